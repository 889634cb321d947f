from debug_gym_core import Agent, hookimpl


class RandomAgent(Agent):
    """Plays examples of its tools at random until the episode ends: what any other agent must beat."""

    name = "random_agent"
    needs_llm = False

    def play(self, env, llm):
        env.action_space.seed(env.seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated


@hookimpl
def debug_gym_register_agents():
    return [RandomAgent]
