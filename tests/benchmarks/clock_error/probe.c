/* A UCI engine that plays a written game, thinks for an exact time and logs its own stamps.
 *
 *   probe SCRIPT LOG_DIRECTORY THINK_US INFO_LINES
 *
 * SCRIPT holds one line a ply: the moves of a principal variation, the first of which is
 * played. A think is a busy wait of THINK_US and a part of a millisecond that differs from
 * move to move: a whole number of milliseconds would hide runners that cut them off. With
 * THINK_US 0 nothing is waited for; with a negative one it sleeps for as long and takes no core.
 * Info lines are spread evenly over the think.
 * LOG_DIRECTORY gets one file a process, written when it ends, a line a move:
 *
 *   game ply wtime_ms btime_ms go_ns bestmove_ns
 *
 * game counts `ucinewgame`; go_ns is CLOCK_MONOTONIC right after the read that brought `go`,
 * bestmove_ns right before the write of `bestmove`. Nothing is written while it plays.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FRACTION_NS = 618033 }; /* of a millisecond: the golden section spreads evenly */
enum { PLIES = 512, LINE = 1024, INPUT = 1 << 16, MOVES_LOGGED = 1 << 18 };

struct logged {
    int game, ply;
    long wtime, btime;
    int64_t go_ns, bestmove_ns;
};

static char script[PLIES][LINE];
static int plies;
static struct logged *played;
static int played_count;
static int sleeps;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void say(const char *text, size_t length) {
    while (length > 0) {
        ssize_t sent = write(STDOUT_FILENO, text, length);
        if (sent <= 0) exit(1);
        text += sent;
        length -= (size_t)sent;
    }
}

static void read_script(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) exit(2);
    while (plies < PLIES && fgets(script[plies], LINE, file)) {
        script[plies][strcspn(script[plies], "\n")] = 0;
        plies++;
    }
    fclose(file);
}

static void write_log(const char *directory) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d-%lld.log", directory, (int)getpid(), (long long)now_ns());
    FILE *file = fopen(path, "w");
    if (!file) return;
    for (int i = 0; i < played_count; i++) {
        struct logged *m = &played[i];
        fprintf(file, "%d %d %ld %ld %lld %lld\n", m->game, m->ply, m->wtime, m->btime,
                (long long)m->go_ns, (long long)m->bestmove_ns);
    }
    fclose(file);
}

/* The plies before a position: some runners send the last one that no move comes back from. */
static int plies_before(const char *position) {
    char side;
    int full;
    const char *fen = strstr(position, " fen ");
    if (!fen || sscanf(fen, " fen %*s %c %*s %*s %*s %d", &side, &full) != 2) return 0;
    return 2 * (full - 1) + (side == 'b');
}

/* The ply to be played is one more than those before and the moves behind `moves`. */
static int ply_of(const char *position) {
    const char *moves = strstr(position, " moves ");
    int count = 1 + plies_before(position);
    if (!moves) return count;
    for (const char *at = moves + 7; *at; at++)
        count += *at != ' ' && (at[1] == ' ' || at[1] == 0);
    return count;
}

static long number_after(const char *line, const char *word) {
    const char *at = strstr(line, word);
    return at ? atol(at + strlen(word)) : -1;
}

static void wait_until(int64_t at_ns) {
    struct timespec t = {at_ns / 1000000000, at_ns % 1000000000};
    if (sleeps)
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {}
    else
        while (now_ns() < at_ns) {}
}

static void think(int ply, int64_t go_ns, int64_t think_ns, int lines) {
    char text[LINE + 200];
    const char *variation = script[ply - 1];
    for (int i = 0; i < lines; i++) {
        wait_until(go_ns + think_ns * (i + 1) / (lines + 1));
        int length = snprintf(text, sizeof text,
                              "info depth %d seldepth %d multipv 1 score cp 13 nodes %d nps 1000000"
                              " hashfull 10 tbhits 0 time 1 pv %s\n",
                              1 + i % 40, 10 + i % 40, 1000 * (i + 1), variation);
        say(text, (size_t)length);
    }
    wait_until(go_ns + think_ns);
}

static void go(const char *line, int game, int ply, int64_t go_ns, int64_t think_ns, int lines) {
    char text[64];
    if (ply > plies) {
        say("bestmove 0000\n", 14);
        return;
    }
    if (think_ns > 0) think_ns += (int64_t)ply * FRACTION_NS % 1000000;
    think(ply, go_ns, think_ns, lines);
    int length = snprintf(text, sizeof text, "bestmove %.*s\n",
                          (int)strcspn(script[ply - 1], " "), script[ply - 1]);
    int64_t bestmove_ns = now_ns();
    say(text, (size_t)length);
    if (played_count < MOVES_LOGGED)
        played[played_count++] = (struct logged){game, ply, number_after(line, "wtime "),
                                                 number_after(line, "btime "), go_ns, bestmove_ns};
}

int main(int count, char **arguments) {
    static char input[INPUT + 1];
    size_t kept = 0;
    int game = 0, ply = 1;
    if (count != 5) return 2;
    read_script(arguments[1]);
    int64_t think_ns = atoll(arguments[3]) * 1000;
    sleeps = think_ns < 0;
    if (sleeps) think_ns = -think_ns;
    int lines = atoi(arguments[4]);
    played = calloc(MOVES_LOGGED, sizeof *played);
    if (!played) return 2;
    for (;;) {
        ssize_t got = read(STDIN_FILENO, input + kept, INPUT - kept);
        int64_t read_ns = now_ns();
        if (got <= 0) break;
        kept += (size_t)got;
        input[kept] = 0;
        char *line = input, *end;
        while ((end = strchr(line, '\n'))) {
            *end = 0;
            if (!strcmp(line, "uci"))
                say("id name Probe\nid author Tournament Farm\nuciok\n", 46);
            else if (!strcmp(line, "isready"))
                say("readyok\n", 8);
            else if (!strcmp(line, "ucinewgame"))
                game++;
            else if (!strncmp(line, "position ", 9))
                ply = ply_of(line);
            else if (!strncmp(line, "go", 2))
                go(line, game, ply, read_ns, think_ns, lines);
            else if (!strcmp(line, "quit")) {
                write_log(arguments[2]);
                return 0;
            }
            line = end + 1;
        }
        kept = strlen(line);
        memmove(input, line, kept);
    }
    write_log(arguments[2]);
    return 0;
}
