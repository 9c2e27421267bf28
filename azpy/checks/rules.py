"""What a game must keep, by name: what must hold, and what to do where it does not."""

from typing import NamedTuple


class Rule(NamedTuple):
    """Something that a game must keep: what it is, and what to do where it is broken."""

    holds: str
    advice: str


RULES = {
    "attributes": Rule(
        "num_actions, obs_shape and max_plies are whole numbers above 0 and stay as they are",
        "set the three on the class, or in __init__ from the size of the board, and never change them",
    ),
    "exception": Rule("no method raises an exception", "put right the line of your file that is named above"),
    "turn": Rule(
        "turn is a player from 0 to num_players - 1, azpy.CHANCE or azpy.TERMINAL",
        "return 0 or 1 for the player to move of two (not 1 and 2), azpy.CHANCE before a roll, azpy.TERMINAL when the "
        "game is over. A game of another number of players, 1 to 6, sets num_players",
    ),
    "legal-type": Rule(
        "legal actions are a list of whole numbers", "return a list; array.tolist() makes one of an array"
    ),
    "legal-none": Rule(
        "there is a legal action at every player's turn",
        "end the game there (azpy.TERMINAL), give the turn to the other player, or add an action that passes",
    ),
    "legal-range": Rule(
        "legal actions are from 0 to num_actions - 1", "give num_actions the number of all actions there can be"
    ),
    "legal-order": Rule("legal actions ascend", "return sorted(actions)"),
    "legal-twice": Rule(
        "no legal action is there twice",
        "find out why two ways lead to one number: if they are different actions, they need different numbers",
    ),
    "chance-type": Rule(
        "chance outcomes are pairs (outcome, probability), the outcomes ascending whole numbers, the probabilities "
        "from 0 to 1",
        "return a list such as [(0, 0.5), (1, 0.5)], sorted by outcome, each outcome once",
    ),
    "chance-sum": Rule(
        "the probabilities of a roll sum to 1", "divide each by their sum, or look for an outcome that is missing"
    ),
    "outcome": Rule(
        "the outcome is a number in [-1, 1], and no bool; with more than two players a number for each",
        "return 1.0 if player 0 won, -1.0 if player 0 lost and 0.0 for a draw, or points divided by the most there can "
        "be; as a number, False is a draw. With num_players = 3 return three numbers, player 0 first",
    ),
    "encode-type": Rule(
        "an observation is a numpy array of float32 with the shape obs_shape",
        "make it with np.zeros(self.obs_shape, np.float32), or end with .astype(np.float32).reshape(self.obs_shape)",
    ),
    "encode-finite": Rule("observations are finite", "look for a division by 0"),
    "encode-own": Rule(
        "every observation is an array of its own",
        "make a new array in encode, or return a .copy() of the one that is kept",
    ),
    "key-range": Rule(
        "key is a whole number in [0, 2**128)",
        "build it from the parts of the position, of an array with int.from_bytes(hashlib.blake2b(array.tobytes(), "
        "digest_size=16).digest()); hash() can be negative and is no key",
    ),
    "asking": Rule(
        "asking a position changes nothing: the same question has the same answer",
        "only play may change the position; what happens by chance belongs in chance_outcomes",
    ),
    "clone": Rule(
        "a clone is the same position, and lives its own life",
        "copy every list, set, dict and array in clone, and keep nothing that changes on the class",
    ),
    "replay": Rule(
        "the same actions lead to the same position, whoever was asked on the way",
        "make anew in play what is kept from earlier questions (a list of legal actions); use no random numbers in "
        "play",
    ),
    "start": Rule(
        "every game begins with the same position", "keep nothing that changes on the class or in the module"
    ),
    "length": Rule(
        "every game ends within max_plies, rolls counted",
        "raise max_plies to the longest game there can be; if there is none, count plies, end the game at a limit, and "
        "make the count part of key",
    ),
    "repeat": Rule(
        "no key comes twice in one game",
        "if positions can come again, the game need not end: count plies or repetitions, end the game at a limit, and "
        "make the count part of key",
    ),
    "key": Rule(
        "equal keys mean equal positions, and equal futures",
        "key must tell apart all that turn, legal_actions, encode, outcome and the plies to come depend on: every part "
        "of the board, whose turn it is, counters, history",
    ),
    "perspective": Rule(
        "what looks the same to both players is worth the same to both",
        "outcome is for player 0 (or one number a player, player 0 first), whoever moves; encode is seen by the player "
        "to move. If both are so, encode leaves out something that decides the game",
    ),
    "hidden": Rule(
        "encode hides nothing that search knows",
        "let encode tell these positions apart (encode is seen by the player to move, outcome is for player 0). A "
        "counter of plies or repetitions may stay out if it rarely decides. If the rules hide something from a player "
        "(cards, moves at the same time), azpy cannot play the game, as its search would use what the player cannot "
        "know; OpenSpiel has algorithms for such games",
    ),
    "refusal": Rule("illegal actions are refused, and change nothing", "see Game::try_play in azpy-core"),
    "symmetry": Rule(
        "each symmetry permutes actions and planes alike, and another one undoes it",
        "see num_symmetries, symmetric_action and symmetric_observation; num_symmetries 1 has none",
    ),
    "planes": Rule(
        "planes and actions are as the game says they are",
        "see Game::plane_divisors, action_cells and policy_planes; without them nothing is assumed",
    ),
    "text": Rule("a position that is written as text is read back the same", "see Game::to_text and Game::parse"),
    "process": Rule(
        "the game is the same in another process",
        "leave out hash(), id() and the order of sets: they differ from process to process",
    ),
    # Signs of a mistake that can also be right: warnings.
    "names": Rule(
        "the legal actions of a position have different names",
        "let action_name tell them apart: people type these names",
    ),
    "one-player": Rule(
        "all players move",
        "play changes whose turn it is, and turn gives 0 or 1, or up to num_players - 1. A puzzle of one player sets "
        "num_players = 1. If the other player moves only in rarer games, all is well",
    ),
    "one-score": Rule(
        "random games of one player pay more and less",
        "where random play never reaches the goal, nothing can be learned: let outcome pay for the way to the goal "
        "too, or deal easier starts",
    ),
    "one-sided": Rule(
        "either player wins now and then",
        "outcome is 1.0 if player 0 won, -1.0 (not 0) if player 0 lost, 0.0 for a draw, whoever moves or has moved; "
        "with more than two players it is one number a player. If one player really cannot win, all is well",
    ),
    "sides": Rule(
        "what is good for player 0 is good for it whoever moves last",
        "outcome is for player 0, not for the player who moves or has moved; if the rules give the game to the one or "
        "the other by who moves last, all is well",
    ),
    "one-view": Rule(
        "an observation shows whose turn it is, or is seen by that player",
        "give encode the planes of the player to move first, then those of the opponent; or a plane that says whose "
        "turn it is",
    ),
    "unfinished": Rule("random games end in good time", "give it more --seconds, or look whether the game ends at all"),
}
