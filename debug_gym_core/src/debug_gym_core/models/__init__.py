"""Language models: what a backend implements, and what backends share.

`llm` is the interface; `service` what all have that ask a service: prices, retries, limits. `chat_client`,
`chat_format`, `chat_errors` and `responses_format` are OpenAI's formats, which most services speak; `text_calls` is
for models that act in words, which `text_actions` reads. Backends are plugins; who a person's models are is in
`config.llm_yaml`.
"""
