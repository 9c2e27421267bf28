"""A game of azpy as a PettingZoo environment: `env("connect_four")`, `env("my_game:MyGame")`."""

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv

import azpy


class GameEnv(AECEnv):
    """Players take turns; chance turns play themselves. Rewards come at the end of a game."""

    metadata = {"name": "azpy", "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, game):
        self.start, self.render_mode = azpy.make_game(game), None
        self.possible_agents = [f"player_{player}" for player in range(self.start.num_players)]
        seen, mask = Box(-np.inf, np.inf, self.start.obs_shape), Box(0, 1, (self.start.num_actions,), np.int8)
        space = Dict({"observation": seen, "action_mask": mask})
        self.observation_space = dict.fromkeys(self.possible_agents, space).get
        self.action_space = {agent: Discrete(self.start.num_actions) for agent in self.possible_agents}.get

    def reset(self, seed=None, options=None):
        self.position, self.rng = self.start.clone(), np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.rewards, self._cumulative_rewards = (dict.fromkeys(self.agents, 0.0) for _ in range(2))
        self.terminations, self.truncations = (dict.fromkeys(self.agents, False) for _ in range(2))
        self.infos = {agent: {} for agent in self.agents}
        self._go_on()

    def observe(self, agent):
        mask, row = np.zeros(self.start.num_actions, np.int8), np.zeros(self.start.obs_shape, np.float32)
        if not self.position.is_terminal and agent == self.agent_selection:
            mask[self.position.legal_actions()] = 1
            row = self.position.observation()  # as the player to move sees it
        return {"observation": row, "action_mask": mask}

    def step(self, action):
        if self.terminations[self.agent_selection]:
            return self._was_dead_step(action)
        self._cumulative_rewards[self.agent_selection] = 0.0
        self.position.play(int(action))
        self._go_on()
        return self._accumulate_rewards()

    def _go_on(self):
        while self.position.turn == azpy.CHANCE:
            outcomes, chances = map(np.array, zip(*self.position.chance_outcomes(), strict=True))
            self.position.play(int(self.rng.choice(outcomes, p=chances / chances.sum())))
        if not self.position.is_terminal:
            self.agent_selection = self.possible_agents[self.position.turn]
            return
        self.rewards = dict(zip(self.possible_agents, map(float, self.position.outcomes()), strict=True))
        self.terminations = dict.fromkeys(self.agents, True)


env = GameEnv
