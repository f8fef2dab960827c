/* rb_broker.h: the engine of a broker as Ruby sees it.
 *
 *     Hikyaku::Broker::NativeEngine ──┐
 *     …::Session ─────────────────────┼──► rb_hk_broker_t: broker, lock
 *     Hikyaku::Server::NativeReactor ─────────┘
 *
 * The rules of rb_hk.h hold. A session is known to the engine by its number, which Ruby has its object under.
 */
#ifndef RB_BROKER_H
#define RB_BROKER_H

#include "rb_hk.h"

/* A job that Ruby has, of one lane: what may take long, until the engine has it back. */
typedef enum rb_hk_errand { RB_HK_NONE, RB_HK_HELD, RB_HK_RUNNING, RB_HK_RAN } rb_hk_errand_t;

/* A broker with its lock. Freed with the last Ruby object that holds it; counted under the GVL. */
typedef struct rb_hk_broker {
    hk_lock_t lock;
    hk_broker_t *broker; /* NULL: it is closed, or the parent's. With the lock */
    size_t holders;
    hk_job_t *jobs[HK_LANES]; /* With the lock, as what becomes of them: */
    rb_hk_errand_t errands[HK_LANES];
    bool driven; /* a loop has it: nobody else touches its sessions. Under the GVL */
    rb_hk_watched_t watched;
} rb_hk_broker_t;

/* As hk_session_t; the session ends with the broker at the latest. */
typedef struct rb_hk_session {
    rb_hk_broker_t *broker;
    hk_session_t *session; /* NULL: it has ended */
    size_t taken, gathered;
} rb_hk_session_t;

rb_hk_broker_t *rb_hk_broker_hold(rb_hk_broker_t *broker);
void rb_hk_broker_drop(rb_hk_broker_t *broker);

/* Raise TypeError; IOError when it was never opened. */
rb_hk_broker_t *rb_hk_broker_of(VALUE engine);
/* The same, and IOError when a loop has it. */
rb_hk_broker_t *rb_hk_broker_undriven(VALUE engine);
/* TypeError; ArgumentError for a session of another broker. It may have ended. */
rb_hk_session_t *rb_hk_session_of(VALUE session, const rb_hk_broker_t *broker);

/* Runs `work` with the lock, unless the broker is closed: then IOError is raised. Otherwise as rb_hk_locked. */
void rb_hk_with_broker(rb_hk_broker_t *broker, void (*work)(hk_broker_t *broker, void *argument), void *argument);

/* The same for what may take long: without the GVL in any case. */
void rb_hk_with_broker_slowly(rb_hk_broker_t *broker, void (*work)(hk_broker_t *broker, void *argument),
                              void *argument);

/* What went wrong with the storage: [sentence, segment, offset, errno]. */
VALUE rb_hk_trouble(const hk_journal_trouble_t *trouble);
/* The same, nil for HK_OK. */
VALUE rb_hk_outcome(hk_status_t status, const hk_journal_trouble_t *trouble);
void rb_hk_copy_trouble(hk_broker_t *broker, hk_journal_trouble_t *trouble);

/* Gives the engine back what Ruby has of its jobs. False: one is running. With the lock. */
bool rb_hk_finish_jobs(rb_hk_broker_t *broker);

/* [[pattern, rights], …] in an array of RB_HK_TEMPORARY; `kept`, an Array, keeps its bytes. */
size_t rb_hk_permission_count(VALUE array);
void rb_hk_permissions(VALUE array, size_t count, hk_permission_t *permissions, VALUE kept);

/* [serial, identity, credentials, kind, agent, address] */
VALUE rb_hk_hello(const hk_hello_t *hello);

void rb_hk_init_broker_disk(VALUE engine_class);     /* rb_broker_disk.c */
void rb_hk_init_broker_session(VALUE engine_class);  /* rb_broker_session.c */
void rb_hk_init_broker_decision(VALUE engine_class); /* rb_broker_decision.c */
void rb_hk_init_broker_figures(VALUE engine_class);  /* rb_broker_figures.c */

#endif
