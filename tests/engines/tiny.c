// A small chess engine in one file, for tests that build engines from source.
// Two plies by material; it makes neither castling nor en passant, but knows its opponent's.
// -DWORST: it plays the move that it thinks worst of, as after a wrong sign.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int board[128], side;
static long nodes;
static const int VALUE[] = {0, 100, 300, 300, 500, 900, 20000};
static const int STEPS[7][9] = {{0}, {0}, {31, 33, 14, 18, -31, -33, -14, -18},
    {15, 17, -15, -17}, {1, 16, -1, -16}, {1, 16, 15, 17, -1, -16, -15, -17},
    {1, 16, 15, 17, -1, -16, -15, -17}};
typedef struct { int from, to, promotion; } Move;

static void make(Move m) {
    int piece = board[m.from], gap = m.to - m.from;
    if (abs(piece) == 1 && (gap & 7) && !board[m.to]) board[(m.from & 0x70) | (m.to & 7)] = 0;
    if (abs(piece) == 6 && abs(gap) == 2) {
        int rook = gap > 0 ? m.to + 1 : m.to - 2;
        board[(m.from + m.to) / 2] = board[rook];
        board[rook] = 0;
    }
    board[m.to] = m.promotion ? m.promotion * side : piece;
    board[m.from] = 0;
    side = -side;
}

static int attacked(int square, int by) {
    for (int d = -1; d <= 1; d += 2) {
        int from = square - 16 * by + d;
        if (!(from & 0x88) && board[from] == by) return 1;
    }
    for (int kind = 2; kind <= 6; kind++)
        for (int i = 0; STEPS[kind][i]; i++)
            for (int at = square + STEPS[kind][i]; !(at & 0x88); at += STEPS[kind][i]) {
                if (board[at] == kind * by) return 1;
                if (board[at] || kind == 2 || kind == 6) break;
            }
    return 0;
}

static int in_check(int of) {
    for (int at = 0; at < 128; at++)
        if (!(at & 0x88) && board[at] == 6 * of) return attacked(at, -of);
    return 1;
}

static int moves(Move *list) {
    int count = 0;
    for (int at = 0; at < 128; at++) {
        if ((at & 0x88) || board[at] * side <= 0) continue;
        int kind = abs(board[at]);
        if (kind == 1) {
            int up = at + 16 * side, promotion = (up >> 4) % 7 ? 0 : 5;
            if (!board[up]) {
                list[count++] = (Move){at, up, promotion};
                if ((at >> 4) == (side > 0 ? 1 : 6) && !board[up + 16 * side])
                    list[count++] = (Move){at, up + 16 * side, 0};
            }
            for (int to = up - 1; to <= up + 1; to += 2)
                if (!(to & 0x88) && board[to] * side < 0) list[count++] = (Move){at, to, promotion};
            continue;
        }
        for (int i = 0; STEPS[kind][i]; i++)
            for (int to = at + STEPS[kind][i]; !(to & 0x88); to += STEPS[kind][i]) {
                if (board[to] * side > 0) break;
                list[count++] = (Move){at, to, 0};
                if (board[to] || kind == 2 || kind == 6) break;
            }
    }
    return count;
}

static int search(int depth, Move *best) {
    nodes++;
    if (!depth) {
        int score = 0;
        for (int at = 0; at < 128; at++)
            if (!(at & 0x88)) score += (board[at] > 0 ? 1 : -1) * VALUE[abs(board[at])] + (board[at] == side);
        return score * side;
    }
    Move list[256];
    int kept[128], of = side, top = -30000, legal = 0, count = moves(list);
    memcpy(kept, board, sizeof board);
    for (int i = 0; i < count; i++) {
        make(list[i]);
        if (!in_check(of)) {
            int score = -search(depth - 1, NULL);
#ifdef WORST
            if (best) score = -score;
#endif
            if (!legal++ || score > top) {
                top = score;
                if (best) *best = list[i];
            }
        }
        memcpy(board, kept, sizeof board);
        side = of;
    }
#ifdef WORST
    if (best) top = -top;
#endif
    return legal ? top : in_check(of) ? -10000 : 0;
}

static void set(char *words) {
    char *start = strstr(words, "fen "), *played = strstr(words, "moves ");
    char fen[100] = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w";
    if (start) snprintf(fen, sizeof fen, "%.99s", start + 4);
    memset(board, 0, sizeof board);
    char *at = fen;
    for (int square = 112; *at != ' '; at++) {
        const char *found = strchr("PNBRQKpnbrqk", *at);
        if (*at == '/') square -= 24;
        else if (!found) square += *at - '0';
        else {
            int piece = (int)(found - "PNBRQKpnbrqk");
            board[square++] = piece < 6 ? piece + 1 : 5 - piece;
        }
    }
    side = at[1] == 'w' ? 1 : -1;
    for (char *word = played ? strtok(played + 6, " \n") : NULL; word; word = strtok(NULL, " \n")) {
        const char *kinds = "  nbrq", *kind = word[4] ? strchr(kinds, word[4]) : NULL;
        make((Move){word[0] - 'a' + 16 * (word[1] - '1'), word[2] - 'a' + 16 * (word[3] - '1'),
            kind ? (int)(kind - kinds) : 0});
    }
}

int main(int count, char **words) {
    static char line[65536];
    Move best;
    if (count > 1 && !strcmp(words[1], "bench")) {
        set(line);
        search(3, &best);
#ifdef WORST
        nodes++;
#endif
        printf("%ld nodes 1000000 nps\n", nodes);
        return 0;
    }
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "quit", 4)) break;
        if (!strcmp(line, "uci\n")) puts("id name Tiny\nuciok");
        if (!strcmp(line, "isready\n")) puts("readyok");
        if (!strncmp(line, "position", 8)) set(line);
        if (!strncmp(line, "go", 2)) {
            nodes = 0;
            int score = search(2, &best);
            printf("info depth 2 nodes %ld score cp %d\nbestmove %c%c%c%c%s\n", nodes, score,
                'a' + best.from % 16, '1' + best.from / 16, 'a' + best.to % 16, '1' + best.to / 16,
                best.promotion ? "q" : "");
        }
        fflush(stdout);
    }
    return 0;
}
