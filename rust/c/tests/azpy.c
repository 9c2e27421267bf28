/* What a program in C sees of azpy. The arguments are two folders of players: those of azpy, and those of c.rs. */
#include "azpy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) { \
            fprintf(stderr, "line %d: %s; azpy says: %s\n", __LINE__, #fact, azpy_error()); \
            exit(1); \
        } \
    } while (0)
#define SAYS(text) CHECK(strstr(azpy_error(), text) != NULL)

static char folder[4096];

static const char *player(const char *players, const char *name) {
    snprintf(folder, sizeof folder, "%s/%s", players, name);
    return folder;
}

static azpy_game *opened(const char *name, const char *position) {
    azpy_game *game = azpy_open(NULL, name, position);
    CHECK(game != NULL);
    return game;
}

static void a_player_plays_a_game_to_its_end(const char *players) {
    azpy_game *game = azpy_open(player(players, "connect_four"), NULL, NULL);
    CHECK(game != NULL);
    const azpy_position *seen = azpy_look(game);
    CHECK(seen != NULL && seen->turn == 0 && seen->num_players == 2 && seen->num_moves == 7);
    CHECK(strcmp(seen->moves[3].name, "4") == 0 && seen->moves[3].action == 3 && seen->moves[3].visits == 0);
    CHECK(azpy_search(game, 0) == 3); /* the network alone begins in the middle */
    seen = azpy_look(game);
    float priors = 0;
    for (size_t move = 0; move < seen->num_moves; ++move) priors += seen->moves[move].prior;
    CHECK(fabsf(priors - 1.0f) < 1e-4f && seen->moves[3].prior > 0.3f && seen->moves[3].policy > 0.3f);
    for (int round = 1; round <= 2; ++round) {
        CHECK(azpy_search(game, 100) == 3);
        seen = azpy_look(game);
        uint32_t visits = 0;
        float policy = 0;
        for (size_t move = 0; move < seen->num_moves; ++move) {
            visits += seen->moves[move].visits;
            policy += seen->moves[move].policy;
        }
        CHECK(visits == 100u * (unsigned)round); /* simulations add up */
        CHECK(fabsf(policy - 1.0f) < 1e-4f && seen->values[0] != 0 && seen->values[1] == -seen->values[0]);
    }
    int plies = 0;
    while (azpy_look(game)->turn != AZPY_OVER) {
        CHECK(azpy_look(game)->turn == plies % 2);
        /* The player against who always plays the first legal action. */
        int action = plies % 2 ? azpy_look(game)->moves[0].action : azpy_search(game, 50);
        CHECK(azpy_play(game, action) == 0);
        ++plies;
    }
    seen = azpy_look(game);
    CHECK(seen->num_moves == 0 && seen->values[0] == 1.0f && seen->values[1] == -1.0f);
    CHECK(strstr(seen->drawing, "x") != NULL);
    CHECK(azpy_search(game, 10) == AZPY_ERROR);
    SAYS("the game is over");
    CHECK(azpy_play(game, 3) == AZPY_ERROR && azpy_look(game)->turn == AZPY_OVER);
    CHECK(azpy_undo(game, 1) == 1 && azpy_look(game)->turn == (plies - 1) % 2);
    CHECK(azpy_undo(game, SIZE_MAX) == plies - 1 && azpy_look(game)->turn == 0);
    CHECK(azpy_undo(game, 1) == 0);
    azpy_close(game);
}

static void a_win_is_found_and_its_tree_comes_back(const char *players) {
    azpy_game *game = azpy_open(player(players, "connect_four"), NULL, "4 4 5 5 6 1");
    CHECK(game != NULL);
    int best = azpy_search(game, 200);
    CHECK(best == 2 || best == 6);
    CHECK(azpy_look(game)->values[0] == 1.0f); /* proven */
    CHECK(azpy_play(game, 0) == 0 && azpy_look(game)->moves[0].visits == 0);
    CHECK(azpy_search(game, 20) >= 0 && azpy_undo(game, 1) == 1);
    CHECK(azpy_look(game)->moves[best].visits == 0 && azpy_look(game)->values[0] == 0); /* until a search */
    CHECK(azpy_search(game, 0) == best && azpy_look(game)->moves[best].value == 1.0f);
    CHECK(azpy_action(game, "7") == 6 && azpy_play(game, 6) == 0 && azpy_look(game)->turn == AZPY_OVER);
    azpy_close(game);
}

static uint32_t visits_after(azpy_game *game, uint32_t simulations) {
    CHECK(azpy_search(game, simulations) >= 0);
    uint32_t visits = 0;
    for (size_t move = 0; move < azpy_look(game)->num_moves; ++move) visits += azpy_look(game)->moves[move].visits;
    return visits;
}

static void the_trees_of_eight_positions_come_back(void) {
    azpy_game *game = opened("hex(size=5)", NULL);
    uint32_t before[10];
    for (int ply = 0; ply < 10; ++ply) {
        before[ply] = visits_after(game, 40);
        CHECK(azpy_play(game, azpy_look(game)->moves[0].action) == 0);
    }
    CHECK(azpy_search(game, 0) >= 0);
    for (int ply = 9; ply >= 2; --ply) {
        CHECK(azpy_undo(game, 1) == 1 && visits_after(game, 1) == before[ply] + 1);
    }
    CHECK(azpy_undo(game, 1) == 1 && visits_after(game, 1) == 1); /* that of the ninth is gone */
    CHECK(azpy_undo(game, 5) == 1 && visits_after(game, 1) == 1);
    azpy_close(game);
}

static void equal_calls_give_equal_results(const char *players) {
    azpy_game *one = azpy_open(player(players, "tic_tac_toe"), NULL, NULL), *other = azpy_open(folder, NULL, NULL);
    CHECK(one != NULL && other != NULL);
    for (int ply = 0; ply < 2; ++ply) {
        int action = azpy_search(one, 20);
        CHECK(action >= 0 && action == azpy_search(other, 20));
        const azpy_position *first = azpy_look(one), *second = azpy_look(other);
        CHECK(first->num_moves == second->num_moves);
        for (size_t move = 0; move < first->num_moves; ++move) {
            CHECK(first->moves[move].visits == second->moves[move].visits);
            CHECK(first->moves[move].value == second->moves[move].value);
        }
        CHECK(azpy_play(one, action) == 0 && azpy_play(other, action) == 0);
    }
    azpy_close(one);
    azpy_close(other);
}

static void names_and_positions_are_read(void) {
    azpy_game *game = opened("chess", "r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4");
    CHECK(azpy_action(game, "h5f7") == azpy_action(game, "Qxf7#"));
    CHECK(azpy_play(game, azpy_action(game, "Qxf7#")) == 0);
    CHECK(azpy_look(game)->turn == AZPY_OVER && azpy_look(game)->values[0] == 1.0f);
    azpy_close(game);
    game = opened("tic_tac_toe", "");
    const int actions[] = {0, 3, 1, 4};
    for (int ply = 0; ply < 4; ++ply) CHECK(azpy_play(game, actions[ply]) == 0);
    CHECK(azpy_search(game, 200) == 2); /* three in a row: random games see it too */
    azpy_close(game);
}

static void dice_are_thrown_by_the_caller(void) {
    azpy_game *game = opened("pig", NULL);
    CHECK(azpy_search(game, 50) == azpy_action(game, "roll") && azpy_play(game, azpy_action(game, "roll")) == 0);
    const azpy_position *seen = azpy_look(game);
    CHECK(seen->turn == AZPY_CHANCE && seen->num_moves == 6);
    float sum = 0;
    for (int roll = 0; roll < 6; ++roll) sum += seen->moves[roll].probability;
    CHECK(fabsf(sum - 1.0f) < 1e-6f);
    CHECK(azpy_search(game, 50) == AZPY_ERROR);
    SAYS("a roll is due");
    CHECK(azpy_play(game, seen->moves[5].action) == 0 && azpy_look(game)->turn == 0);
    CHECK(azpy_search(game, 50) >= 0 && azpy_undo(game, 2) == 2);
    azpy_close(game);
}

static void three_players_have_a_value_each(void) {
    azpy_game *game = opened("connect_four_for_three(width=5,height=4)", NULL);
    CHECK(azpy_look(game)->num_players == 3 && azpy_search(game, 60) >= 0);
    const float *values = azpy_look(game)->values;
    CHECK(fabsf(values[0] + values[1] + values[2]) < 3.0f && values[3] == 0.0f);
    CHECK(azpy_play(game, 2) == 0 && azpy_look(game)->turn == 1);
    azpy_close(game);
}

static void a_ranked_player_searches_for_its_score(const char *made) {
    /* One move is left, and the game ends with 4 pegs: a score of -0.5, where -0.75 was to beat. */
    azpy_game *game = azpy_open(player(made, "ranked"), NULL, ".x./.../x.x..xx/......./......./.../...");
    CHECK(game != NULL && azpy_search(game, 10) == 51);
    CHECK(azpy_look(game)->num_players == 1 && azpy_look(game)->moves[0].value == 1.0f);
    CHECK(azpy_play(game, 51) == 0 && azpy_look(game)->values[0] == -0.5f); /* what it got */
    azpy_close(game);
}

static void damaged_players_are_refused(const char *made) {
    CHECK(azpy_open(player(made, "changed"), NULL, NULL) == NULL);
    SAYS("model.safetensors differs from manifest.json");
    CHECK(azpy_open(player(made, "unvouched"), NULL, NULL) == NULL);
    SAYS("manifest.json cannot be read");
    CHECK(azpy_open(player(made, "unread"), NULL, NULL) == NULL);
    SAYS("metrics.jsonl has a line that is not JSON");
    CHECK(azpy_open(player(made, "unset"), NULL, NULL) == NULL);
    SAYS("config.toml: match_solver must be true or false, got 3");
}

static void long_texts_make_short_errors(void) {
    const size_t length = 20 * 1000 * 1000;
    char *text = malloc(length + 1);
    CHECK(text != NULL);
    memset(text, 'a', length);
    text[length] = '\0';
    azpy_game *game = opened("chess", NULL);
    CHECK(azpy_open(text, NULL, NULL) == NULL && strlen(azpy_error()) < 1000);
    SAYS("give a run, or a folder of --card");
    CHECK(azpy_open(NULL, text, NULL) == NULL && strlen(azpy_error()) < 1000);
    SAYS("unknown game");
    CHECK(azpy_open(NULL, "chess", text) == NULL && strlen(azpy_error()) < 1000);
    CHECK(azpy_action(game, text) == AZPY_ERROR && strlen(azpy_error()) < 1000);
    azpy_close(game);
    free(text);
}

static void errors_are_texts_and_leave_the_game_as_it_was(const char *players) {
    CHECK(azpy_open(NULL, NULL, NULL) == NULL);
    SAYS("folder and game are both NULL");
    CHECK(azpy_open("", NULL, NULL) == NULL && azpy_open("", "chess", NULL) == NULL);
    SAYS("folder is empty");
    CHECK(azpy_open(NULL, "", NULL) == NULL);
    SAYS("unknown game");
    CHECK(azpy_open(NULL, "chequers", NULL) == NULL);
    SAYS("unknown game");
    CHECK(azpy_open(NULL, "kuhn_poker", NULL) == NULL);
    SAYS("kuhn_poker hides something");
    CHECK(azpy_open(NULL, "\xff", NULL) == NULL);
    SAYS("game is not UTF-8");
    CHECK(azpy_open(NULL, "go(size=99)", NULL) == NULL && azpy_open(NULL, "chess", "no position") == NULL);
    CHECK(azpy_open("no/such/folder", NULL, NULL) == NULL);
    SAYS("no/such/folder/config.toml cannot be read");
    CHECK(azpy_open(player(players, "connect_four"), "othello", NULL) == NULL);
    SAYS("plays connect_four, not othello");
    CHECK(azpy_open(player(players, "go"), "go(size=7,komi=0.5)", NULL) == NULL);
    SAYS("not go(size=7,komi=0.5)");
    azpy_game *small = azpy_open(player(players, "go"), "go(size=7)", NULL);
    CHECK(small != NULL && azpy_look(small)->num_moves == 50);
    azpy_close(small);
    CHECK(azpy_look(NULL) == NULL && azpy_play(NULL, 0) == AZPY_ERROR && azpy_undo(NULL, 1) == AZPY_ERROR);
    CHECK(azpy_action(NULL, "a") == AZPY_ERROR && azpy_search(NULL, 1) == AZPY_ERROR);
    SAYS("game is NULL");
    azpy_close(NULL);

    azpy_game *game = opened("tic_tac_toe", NULL);
    CHECK(azpy_action(game, NULL) == AZPY_ERROR);
    SAYS("text is NULL");
    CHECK(azpy_action(game, "\xc3(") == AZPY_ERROR);
    SAYS("text is not UTF-8");
    CHECK(azpy_action(game, "z9") == AZPY_ERROR && azpy_action(game, "") == AZPY_ERROR);
    CHECK(azpy_play(game, 9) == AZPY_ERROR);
    SAYS("9");
    CHECK(azpy_play(game, azpy_action(game, "z9")) == AZPY_ERROR);
    SAYS("invalid action -1");
    CHECK(azpy_look(game)->turn == 0 && azpy_look(game)->num_moves == 9);
    CHECK(azpy_play(game, 8) == 0 && azpy_look(game)->num_moves == 8);
    azpy_close(game);
}

int main(int argc, char **argv) {
    CHECK(argc == 3 && strcmp(azpy_error(), "") == 0);
    a_player_plays_a_game_to_its_end(argv[1]);
    a_win_is_found_and_its_tree_comes_back(argv[1]);
    the_trees_of_eight_positions_come_back();
    equal_calls_give_equal_results(argv[1]);
    names_and_positions_are_read();
    dice_are_thrown_by_the_caller();
    three_players_have_a_value_each();
    errors_are_texts_and_leave_the_game_as_it_was(argv[1]);
    a_ranked_player_searches_for_its_score(argv[2]);
    damaged_players_are_refused(argv[2]);
    long_texts_make_short_errors();
    puts("all right");
    return 0;
}
