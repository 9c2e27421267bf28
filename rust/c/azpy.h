/* azpy for C: play a trained player in your own program, or any of azpy's games with a plain tree search.
 *
 *     azpy_game *game = azpy_open("runs/connect_four", NULL, NULL);
 *     if (game == NULL) return fprintf(stderr, "%s\n", azpy_error()), 1;
 *     while (azpy_look(game)->turn >= 0) {
 *         int best = azpy_search(game, 400);
 *         if (best < 0 || azpy_play(game, best) < 0) return fprintf(stderr, "%s\n", azpy_error()), 1;
 *         puts(azpy_look(game)->drawing);
 *     }
 *     azpy_close(game);
 *
 * Errors: a function that fails returns NULL or AZPY_ERROR, and azpy_error says why. The game is as it was before. If
 *   azpy itself fails, you can only close the game. If the system has no more memory, the program ends.
 * Memory: azpy owns all that it returns. azpy_close frees a game and all that came from it; free nothing else. azpy
 *   keeps no pointer of yours after a call.
 * Texts: UTF-8, with a NUL at the end. A pointer may be NULL where this file says so; anywhere else NULL is an error.
 * Threads: one thread at a time uses a game, whichever it is. Several threads may use several games at once.
 * Results: equal calls give equal results. Nothing depends on time or on threads. */
#ifndef AZPY_H
#define AZPY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { AZPY_ERROR = -1, AZPY_CHANCE = -2, AZPY_OVER = -3, AZPY_MOST_PLAYERS = 6 };

/* A position, those that led to it, and the trees of their searches. */
typedef struct azpy_game azpy_game;

/* A legal action, or an outcome of a roll. Its last four members are 0 until azpy_search has searched the position. */
typedef struct {
    int action;        /* what azpy_play takes */
    const char *name;  /* as people call it: "4", "e2e4", "pass" */
    float probability; /* of an outcome of a roll; 0 for an action */
    uint32_t visits;   /* simulations through the action, those of earlier searches included */
    float prior;       /* what the network gives the action, before any search; all sum to 1 */
    float policy;      /* what the search gives it; all sum to 1 */
    float value;       /* what the player to move may expect of it, from -1 to 1; 0 without visits */
} azpy_move;

/* What azpy_look sees. */
typedef struct {
    int turn;        /* the player to move, from 0; AZPY_CHANCE where a roll is due; AZPY_OVER */
    int num_players; /* 1 to AZPY_MOST_PLAYERS */
    /* For each player, from -1 to 1: what the player got in a game that is over; else what the player may expect, as
     * the last search of this position says; else 0. */
    float values[AZPY_MOST_PLAYERS];
    size_t num_moves;       /* 0 if the game is over */
    const azpy_move *moves; /* by action, ascending */
    const char *drawing;    /* the board in lines of text */
} azpy_position;

/* Opens a game.
 * folder: a player, as `az-export RUN --card FOLDER` writes it, or a run of az-train. Its newest checkpoint plays, with
 *   the options of search of the run's matches, and after training with ranked rewards with the score that its games
 *   were to beat. NULL: no network, but a plain tree search with random games.
 * game: such as "othello" or "go(size=9)", but none that hides something, such as a card game. NULL: that of the
 *   folder. A player plays its own game. If its network has "+conv", it also plays other sizes.
 * position: where the game begins: a position in the game's notation, such as a FEN of chess, or moves by their names,
 *   such as "4 4 5". NULL: the game's start. */
azpy_game *azpy_open(const char *folder, const char *game, const char *position);

/* Frees a game and all that was returned of it. NULL is no error. */
void azpy_close(azpy_game *game);

/* What there is to see. It stays as it is until the next call with this game. */
const azpy_position *azpy_look(azpy_game *game);

/* The action, or the outcome of a roll, that a text names here: a move's name, or a short form that people use ("Nf3").
 * It is not played. */
int azpy_action(azpy_game *game, const char *text);

/* Plays a legal action, or takes an outcome of a roll. Returns 0. What the search knows of the new position stays. */
int azpy_play(azpy_game *game, int action);

/* Takes back so many plies, rolls included, or all if there are fewer. Returns how many. SIZE_MAX: back to where
 * azpy_open began. The trees of the last 8 positions come back too. Once all trees of a game are larger than 1 GiB, the
 * next search drops them. */
int azpy_undo(azpy_game *game, size_t plies);

/* Searches a position at a player's turn with so many more simulations, and returns the action to play. Call it again
 * to go on, as long as your own clock allows: simulations add up. With 0 the network answers alone. The tree of a
 * position takes 1 GiB at most; a search with a full tree goes on, and the tree no longer grows. */
int azpy_search(azpy_game *game, uint32_t simulations);

/* Why this thread's last failed call failed, in a sentence. It stays until this thread's next failure; "" if there was
 * none. */
const char *azpy_error(void);

#ifdef __cplusplus
}
#endif
#endif
