import pytest

from config_code import DEFAULTS, Config, ConfigError, client_settings


def test_later_layers_win_key_by_key():
    config = Config({"log": {"level": "info", "file": "out.log"}}, {"log": {"level": "debug"}})
    found = config.get("log.level"), config.get("log.file")
    assert found == ("debug", "out.log")


def test_a_lone_reference_keeps_its_type():
    config = Config({"pool": {"size": 4, "limit": "${pool.size}", "title": "pool of ${pool.size}"}})
    found = config.get("pool")
    assert found == {"size": 4, "limit": 4, "title": "pool of 4"}


def test_circles_and_unknown_keys_are_errors():
    config = Config({"ring": {"a": "${ring.b}", "b": "${ring.a}"}})
    with pytest.raises(ConfigError, match=r"^ring.a -> ring.b -> ring.a$"):
        config.get("ring.a")
    with pytest.raises(ConfigError, match=r"^no setting ring.c$"):
        config.get("ring.c")


def test_each_environment_has_its_own_client_settings():
    lines = [client_settings(Config(DEFAULTS, {"service": {"host": host}})) for host in ("alpha", "beta")]
    assert lines == [
        "https://alpha:8443/v1 timeout=10s retry=3x10s",
        "https://beta:8443/v1 timeout=10s retry=3x10s",
    ]


def test_a_new_value_reaches_everything_that_refers_to_it():
    config = Config({"paths": {"root": "/srv", "data": "${paths.root}/data", "cache": "${paths.data}/cache"}})
    before = config.get("paths.cache")
    config.set("paths.root", "/mnt")
    after = config.get("paths.cache")
    assert (before, after) == ("/srv/data/cache", "/mnt/data/cache")


def test_an_override_ends_with_its_block():
    config = Config({"mail": {"to": "ops", "subject": "for ${mail.to}"}})
    with config.override("mail.to", "dev"):
        inside = config.get("mail.subject")
    outside = config.get("mail.subject")
    assert (inside, outside) == ("for dev", "for ops")
