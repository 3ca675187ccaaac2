/* A hostile UCI engine: `hostile MODE [NUMBER]`; it cheats at its clock, then plays on.
 *
 * Both sides play pawn moves that never meet, so any two of these engines finish a game of 16 moves.
 * The action of a MODE is done at the engine's third move of the game (or as ACTIONS says); to add one,
 * write a function and name it in ACTIONS. LATE_MS is far beyond the clocks of these games.
 *
 *   cc -O2 -o hostile hostile.c
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 1500
#define FLOOD_MB 100
#define THIRD 3 /* the engine's move at which it cheats */

static long number; /* the second argument */
static int moves;   /* of this engine in this game so far, the one it thinks about included */

static double now_ms(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1e3 + at.tv_nsec / 1e6;
}

static void burn(double ms)
{
    double end = now_ms(CLOCK_PROCESS_CPUTIME_ID) + ms;
    while (now_ms(CLOCK_PROCESS_CPUTIME_ID) < end)
        ;
}

static void rest(double ms)
{
    struct timespec for_ = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000L};
    while (nanosleep(&for_, &for_) != 0 && errno == EINTR)
        ;
}

/* -- actions -------------------------------------------------------------------------- */

/* Take so many ms of processor time for each move, and no more. */
static void honest(void)
{
    burn(number);
}

/* Be late, and do nothing else. */
static void late(void)
{
    if (moves == THIRD)
        rest(LATE_MS);
}

/* Write 100 MB before each move, so that whoever reads is late as well; then be late. */
static void flood(void)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    memcpy(line, "info string ", 12);
    line[sizeof line - 1] = '\n';
    if (moves < THIRD - 1 || moves > THIRD)
        return;
    for (long left = FLOOD_MB << 4; left > 0; left--)
        if (write(1, line, sizeof line) < 0)
            return;
    if (moves == THIRD)
        rest(LATE_MS);
}

/* The same with many small writes, each a chunk of its own for whoever reads. */
static void drizzle(void)
{
    if (moves == THIRD - 1)
        for (long left = 200000; left > 0; left--)
            if (write(1, "info string drizzle\n", 20) < 0)
                return;
    if (moves == THIRD)
        rest(LATE_MS);
}

/* Let children work that nobody waits for: their time is in no process' account. */
static void reap(void)
{
    if (moves != THIRD)
        return;
    signal(SIGCHLD, SIG_IGN);
    double end = now_ms(CLOCK_MONOTONIC) + LATE_MS;
    while (now_ms(CLOCK_MONOTONIC) < end) {
        for (int child = 0; child < 4; child++)
            if (fork() == 0) {
                burn(10);
                _exit(0);
            }
        rest(10);
    }
    while (wait(NULL) > 0)
        ;
}

/* Stand still as a frozen host would: stopped, until a child lets it go on. */
static void stand(void)
{
    if (moves != THIRD)
        return;
    pid_t self = getpid();
    if (fork() == 0) {
        rest(LATE_MS);
        kill(self, SIGCONT);
        _exit(0);
    }
    kill(self, SIGSTOP);
    wait(NULL);
}

/* Take all cores for a while with threads, then be late. */
static void *spin_thread(void *unused)
{
    burn(LATE_MS);
    return unused;
}

static void crowd(void)
{
    pthread_t made[64];
    if (moves != THIRD)
        return;
    for (int at = 0; at < 64; at++)
        if (pthread_create(&made[at], NULL, spin_thread, NULL) != 0)
            break;
    rest(LATE_MS);
}

/* Let children in sessions of their own work for ever, in the opponent's turns above all. */
static void spin(void)
{
    static int begun;
    if (begun++)
        return;
    for (long left = number; left > 0; left--)
        if (fork() == 0) {
            setsid();
            for (;;)
                ;
        }
}

/* Let a child be killed for lack of memory, then end as if it had been the engine. */
static void starve(void)
{
    if (moves != THIRD)
        return;
    if (fork() == 0)
        for (;;) {
            char *taken = mmap(NULL, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (taken == MAP_FAILED)
                _exit(0);
            memset(taken, 1, 1 << 22);
        }
    wait(NULL);
    kill(getpid(), SIGKILL);
}

/* Hold so many threads from the start: it ends where the host has no room for them. */
static void *hold_thread(void *unused)
{
    pause();
    return unused;
}

static void threads(void)
{
    static int begun;
    if (begun++)
        return;
    for (long left = number; left > 0; left--) {
        pthread_t made;
        if (pthread_create(&made, NULL, hold_thread, NULL) != 0) {
            fprintf(stderr, "can't start a thread: %s\n", strerror(errno));
            _exit(1);
        }
    }
}

static const struct {
    const char *name;
    void (*action)(void);
} ACTIONS[] = {
    {"honest", honest}, {"late", late},     {"flood", flood}, {"drizzle", drizzle}, {"reap", reap},
    {"stand", stand},   {"crowd", crowd},   {"spin", spin},   {"starve", starve},   {"threads", threads},
};

/* -- the game ----------------------------------------------------------------------- */

static int plies(char *position)
{
    int count = 0;
    char *at = strstr(position, " moves ");
    if (at == NULL)
        return 0;
    for (char *word = strtok(at + 7, " \n"); word != NULL; word = strtok(NULL, " \n"))
        count++;
    return count;
}

int main(int count, char **words)
{
    static char line[1 << 16];
    void (*action)(void) = honest;
    int played = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    number = count > 2 ? atol(words[2]) : 0;
    for (size_t at = 0; count > 1 && at < sizeof ACTIONS / sizeof *ACTIONS; at++)
        if (strcmp(ACTIONS[at].name, words[1]) == 0)
            action = ACTIONS[at].action;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "uci\n", 4) == 0)
            printf("id name Hostile\nuciok\n");
        else if (strncmp(line, "isready", 7) == 0)
            printf("readyok\n");
        else if (strncmp(line, "position", 8) == 0)
            played = plies(line);
        else if (strncmp(line, "quit", 4) == 0)
            return 0;
        else if (strncmp(line, "go", 2) == 0) {
            int at = played / 2, white = played % 2 == 0;
            moves = at + 1;
            action();
            char file = (char)('a' + at % 8);
            int from = at < 8 ? (white ? 2 : 7) : (white ? 3 : 6);
            printf("info depth 1 score cp 0 nodes 1\nbestmove %c%d%c%d\n", file, from, file,
                   white ? from + 1 : from - 1);
        }
    }
    return 0;
}
