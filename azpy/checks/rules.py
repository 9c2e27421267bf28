"""The rules of a game by name: what must hold, and what to do if it does not."""

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule of games: what must hold, and what to do if it is broken."""

    holds: str
    advice: str


RULES = {
    "attributes": Rule(
        "num_actions, obs_shape and max_plies are whole numbers above 0 and do not change",
        "set the three on the class, or in __init__ from the size of the board, and never change them",
    ),
    "exception": Rule("no method raises an exception", "correct the line of your file named above"),
    "turn": Rule(
        "turn is a player from 0 to num_players - 1, azpy.CHANCE or azpy.TERMINAL",
        "return 0 or 1 for the player to move (not 1 and 2), azpy.CHANCE before a roll, azpy.TERMINAL when the "
        "game is over. If the game does not have two players, set num_players (1 to 6)",
    ),
    "legal-type": Rule(
        "legal actions are a list of whole numbers",
        "have legal_actions return a list of the actions, not a mask of all of them; array.tolist() converts an array",
    ),
    "legal-none": Rule(
        "there is a legal action at every player's turn",
        "have turn return azpy.TERMINAL there or give the turn to the other player, or have legal_actions list the "
        "action that is missing, such as a pass",
    ),
    "legal-range": Rule(
        "legal actions are from 0 to num_actions - 1",
        "number the actions of legal_actions from 0, and set num_actions to the number of all possible ones",
    ),
    "legal-order": Rule("legal actions ascend", "have legal_actions return sorted(actions)"),
    "legal-twice": Rule(
        "no legal action is listed twice",
        "check why legal_actions lists the number twice: different actions need different numbers",
    ),
    "chance-type": Rule(
        "chance outcomes are pairs (outcome, probability), the outcomes ascending whole numbers, the probabilities "
        "from 0 to 1",
        "have chance_outcomes return a list such as [(0, 0.5), (1, 0.5)], sorted by outcome, each outcome once",
    ),
    "chance-sum": Rule(
        "the probabilities of a roll sum to 1",
        "divide each probability of chance_outcomes by their sum, or look for an outcome that is missing",
    ),
    "outcome": Rule(
        "the outcome is a number in [-1, 1], not a bool; with more than two players it is one number a player",
        "have outcome return 1.0 if player 0 won, -1.0 if player 0 lost and 0.0 for a draw, or points divided by the "
        "highest possible; False would count as a draw. With num_players = 3 return three numbers, player 0 first",
    ),
    "encode-type": Rule(
        "an observation is a numpy array of float32 with the shape obs_shape",
        "begin encode with np.zeros(self.obs_shape, np.float32), or end it with "
        ".astype(np.float32).reshape(self.obs_shape)",
    ),
    "encode-finite": Rule("observations are finite", "look for a division by 0 in encode"),
    "encode-own": Rule(
        "every observation is a new array",
        "make a new array in encode, or return a .copy() of a stored one",
    ),
    "key-range": Rule(
        "key is a whole number in [0, 2**128)",
        "build key from the parts of the position, for an array with int.from_bytes(hashlib.blake2b(array.tobytes(), "
        "digest_size=16).digest()); do not use hash(), which can be negative",
    ),
    "asking": Rule(
        "reading a position does not change it: the same call returns the same answer",
        "only play may change the position, not encode, key, turn or legal_actions; what happens by chance belongs in "
        "chance_outcomes",
    ),
    "clone": Rule(
        "a clone is an independent copy of the position",
        "copy in clone all that play changes, and make a new list, set, dict or array of each; do not keep changing "
        "state on the class",
    ),
    "replay": Rule(
        "the same actions lead to the same position, whether or not methods were called on the way",
        "recompute cached values, such as a list of legal actions, in play; do not use random numbers in play; do not "
        "change the position in encode, key, turn or legal_actions",
    ),
    "start": Rule(
        "every game starts from the same position", "do not keep changing state on the class or in the module"
    ),
    "length": Rule(
        "every game ends within max_plies, rolls included",
        "look at the position: if the game is over there, have turn return azpy.TERMINAL, and if an action of "
        "legal_actions is impossible, leave it out. Else raise max_plies to the longest possible game; if games can go "
        "on forever, count plies, end the game at a limit and make the count part of key",
    ),
    "repeat": Rule(
        "no key repeats within one game",
        "if the two positions differ, include in key what differs. If not, leave out of legal_actions what changes "
        "nothing; or if positions can repeat, a game may never end: count plies or repetitions, end the game at a "
        "limit and make the count part of key",
    ),
    "key": Rule(
        "positions with equal keys are equal and have equal futures",
        "include in key everything that turn, legal_actions, encode, outcome and later plies depend on: every part "
        "of the board, whose turn it is, counters, history",
    ),
    "perspective": Rule(
        "positions that look the same to both players have the same value for both",
        "outcome is for player 0 (or one number a player, player 0 first), at every turn; encode is seen by the player "
        "to move. If both are right, encode leaves out something that decides the game",
    ),
    "hidden": Rule(
        "encode shows everything that search uses",
        "make encode differ between these positions (encode is seen by the player to move, outcome is for player 0). A "
        "counter of plies or repetitions may stay out if it rarely decides. If the rules hide something from a player "
        "(cards, moves at the same time), add view_key: without it, the search uses what the player cannot know. See "
        "docs/guides/hidden.md",
    ),
    "view-type": Rule(
        "view_key is text, bytes or a whole number in [0, 2**128) for each player in every position, or always None",
        "return f'{card} {history}' for example: what this player has seen and done so far",
    ),
    "view": Rule(
        "positions with equal view_keys offer the player to move the same: equal legal actions, observations and texts",
        "make encode, legal_actions, action_name and render_view depend only on what the player to move knows, or make "
        "view_key say more",
    ),
    "recall": Rule(
        "a view_key says all that its player has seen and done (perfect recall)",
        "include the player's own cards and every public action so far in view_key",
    ),
    "refusal": Rule("illegal actions are refused and change nothing", "see Game::try_play in azpy-core"),
    "symmetry": Rule(
        "each symmetry permutes actions and planes in the same way, and another one undoes it",
        "see num_symmetries, symmetric_action and symmetric_observation; with num_symmetries 1 there are none",
    ),
    "planes": Rule(
        "planes and actions match what the game declares",
        "see Game::plane_divisors, action_cells and policy_planes; without them azpy assumes nothing",
    ),
    "text": Rule("a position written as text reads back as the same position", "see Game::to_text and Game::parse"),
    "process": Rule(
        "the game is the same in another process",
        "do not depend on hash(), id() or the order of sets, which differ from process to process",
    ),
    # Signs of a mistake that can also be right: warnings.
    "names": Rule(
        "the legal actions of a position have different names",
        "make action_name return different names: people type them",
    ),
    "look": Rule(
        "encode shows all that view_key says",
        "make encode differ where view_keys differ: a network plays alike in positions that look the same. If the "
        "difference never matters, ignore this warning",
    ),
    "one-player": Rule(
        "all players move",
        "play changes whose turn it is, and turn gives 0 or 1, or up to num_players - 1. A puzzle of one player sets "
        "num_players = 1. If the other player moves only in rare games, ignore this warning",
    ),
    "one-score": Rule(
        "random games have different outcomes",
        "check that outcome says who has won. If random play never reaches the goal, the network cannot learn: reward "
        "progress in outcome too, or use easier starts",
    ),
    "one-sided": Rule(
        "each player wins some random games",
        "outcome is 1.0 if player 0 won, -1.0 (not 0) if player 0 lost, 0.0 for a draw, at every turn; "
        "with more than two players it is one number a player. If one player really cannot win, ignore this warning",
    ),
    "sides": Rule(
        "the outcome is in player 0's view, whichever player moves last",
        "outcome is for player 0, not for the player who moves or has moved; if by the rules the last move decides who "
        "wins, ignore this warning",
    ),
    "one-view": Rule(
        "an observation shows whose turn it is, or is in that player's view",
        "give encode the planes of the player to move first, then those of the opponent; or a plane that says whose "
        "turn it is",
    ),
    "unfinished": Rule(
        "random games end within the time of the check", "give more --seconds, or check whether the game ends at all"
    ),
}
