/* hk_loop_broker_private.h: what the parts of the loop share that deal with a broker. Not for others: see hk_loop.h.
 *
 *     hk_loop_client      connections of the broker
 *     hk_loop_broker      what the broker has to do in a turn
 *     hk_loop_jobs        what a journal has to do that may take long
 *     hk_loop_hello       sessions that wait for Ruby
 *
 * As in hk_loop_private.h everything runs on the loop's thread, unless it says otherwise.
 */
#ifndef HK_LOOP_BROKER_PRIVATE_H
#define HK_LOOP_BROKER_PRIVATE_H

#include "hk_loop_private.h"
#include "hk_worker.h"

enum {
    HK_SESSION_BYTES = 128 * 1024,  /* of one session in a turn */
    HK_SESSIONS_BYTES = 512 * 1024, /* of all sessions in a turn, and as many to them, and one beyond */
    HK_PARTS = 1024,                /* of what is sent to a session at once; the most that the system takes */
    HK_HELLOS = 256                 /* that wait for Ruby; others wait in the broker */
};

/* One block, as an ask. */
struct hk_hello_ask {
    hk_wish_t wish; /* in the queue, with Ruby, or in the inbox */
    hk_hello_t hello;
    hk_permission_t *permissions; /* one block; NULL: it is refused */
    size_t permission_count;
    uint64_t until;
    char sentence[HK_SENTENCE_BYTES];
    size_t sentence_length;
};

/* What runs the jobs of one journal: a thread for each lane, which is there from its first job on. */
typedef struct hk_lane_work {
    hk_errand_t errand;
    hk_worker_t *worker; /* NULL: there was no job yet */
    hk_job_t *job;       /* NULL: none */
    bool out;            /* the job is, else it waits for a thread */
} hk_lane_work_t;

typedef struct hk_jobs {
    void *journal; /* or what stands for it */
    hk_job_t *(*next)(void *journal, hk_lane_t lane);
    hk_status_t (*done)(void *journal, hk_job_t *job);
    hk_lane_work_t lanes[HK_LANES];
    int64_t retry_at; /* HK_NEVER: no job waits for a thread */
} hk_jobs_t;

struct hk_brokerage {
    hk_broker_t *broker;
    bool locked;
    bool touched; /* something has happened since it was last written down */
    bool more;    /* somebody is ready still */
    bool failed;  /* the storage has */
    bool ending;  /* no job is begun any more */
    int64_t next_tick;
    uint32_t hello_count; /* that wait for Ruby */
    ptrdiff_t budget;     /* bytes that may still be read in this turn */
    hk_jobs_t jobs;
    struct iovec parts[HK_PARTS];
    char room[HK_SESSION_BYTES];
};

/* --- hk_loop_client ----------------------------------------------------------------------------------------------- */

/* Somebody has come to the broker. Owns `fd` from now on. */
void hk_client_welcome(hk_loop_t *loop, int fd, hk_bytes_t address);

void hk_client_readable(hk_loop_t *loop, hk_connection_t *connection);
void hk_client_writable(hk_loop_t *loop, hk_connection_t *connection);

/* Sends what there is for somebody who is ready. How many bytes it took. With the broker's lock. */
size_t hk_client_send(hk_loop_t *loop, hk_session_t *session);

/* Reads again from those who have got answers. */
void hk_clients_resume(hk_loop_t *loop);

/* The connection has no session any more, and what was out comes back. Does not close the connection. */
void hk_client_leave(hk_loop_t *loop, hk_connection_t *connection);

/* All sessions end; clients have time to read why. */
void hk_clients_part(hk_loop_t *loop);

/* --- hk_loop_broker ----------------------------------------------------------------------------------------------- */

/* HK_OK, also without a broker, or HK_NO_MEMORY. */
hk_status_t hk_brokerage_open(hk_loop_t *loop);

/* Waits for jobs that are out. Sessions have ended. */
void hk_brokerage_close(hk_loop_t *loop);

/* Frees the memory in a forked child. */
void hk_brokerage_abandon(hk_loop_t *loop);

/* The broker, locked from now on; something happens to it. */
hk_broker_t *hk_loop_broker(hk_loop_t *loop);
void hk_loop_unlock_broker(hk_loop_t *loop);

/* The time of day in this turn: ms since 1970. */
uint64_t hk_loop_wall_ms(hk_loop_t *loop);

/* The broker's part of a turn: time, jobs, what was written, what is to be sent. */
void hk_brokerage_turn(hk_loop_t *loop);

/* Tells everybody that it is about to stop. */
void hk_brokerage_drain(hk_loop_t *loop);

/* Whether everybody has done what they had in hand, and heard of it. True without a broker. */
bool hk_brokerage_drained(hk_loop_t *loop);

/* The last step of a stop, when all sessions have ended. False: a job is out. */
bool hk_brokerage_end(hk_loop_t *loop);

/* --- hk_loop_jobs ------------------------------------------------------------------------------------------------- */

/* Brings back what has run. HK_OK, or what `done` says. */
hk_status_t hk_jobs_take_back(hk_jobs_t *jobs);

/* Lets run what there is to run. */
void hk_jobs_hand_out(hk_loop_t *loop, hk_jobs_t *jobs);

/* Whether something has run. */
bool hk_jobs_finished(const hk_jobs_t *jobs);

/* Whether a job is out. */
bool hk_jobs_out(const hk_jobs_t *jobs);

/* Waits for what is out, brings it back, and ends the threads; what waited for a thread is run here. HK_OK, or what
 * `done` says. */
hk_status_t hk_jobs_end(hk_jobs_t *jobs);

/* In a forked child. */
void hk_jobs_abandon(hk_jobs_t *jobs);

/* --- hk_loop_hello ------------------------------------------------------------------------------------------------ */

/* Asks Ruby about sessions, as many as may wait. With the broker's lock. */
void hk_hellos_ask(hk_loop_t *loop);

/* Does what was decided, and frees it. */
void hk_hello_decided(hk_loop_t *loop, hk_hello_ask_t *ask);

/* Any thread. */
void hk_hello_free(hk_loop_t *loop, hk_hello_ask_t *ask);

#endif
