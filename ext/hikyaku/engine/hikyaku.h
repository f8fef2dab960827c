/* hikyaku.h: the engine, from the bottom up. Each header is the manual of its layer.
 *
 *     hk_status                      what became of a call
 *     hk_alloc   hk_bytes            memory, and bytes that belong to somebody else
 *     hk_buf  hk_map  hk_heap        bytes that grow, things by bytes, things by time
 *     hk_http1  hk_form  hk_sse      what stands on the wire
 *     hk_pack    hk_gzip             and in other forms
 *     hk_json  hk_date               and in it
 *     hk_topic  hk_program           what updates are about, and patterns that run in linear time
 *     hk_matcher  hk_index           which topics, and who to ask for a topic
 *     hk_crc32c  hk_files  hk_arena  checksums, the calls that files need, memory that comes and goes in order
 *     hk_journal                     a log on the disk
 *     hk_log                         everything that was published, in order
 *     hk_frame  hk_broker            queues, messages, leases: the broker
 *     hk_grant  hk_hub               who may do what; feeds, subscribers, delivery
 *     hk_gate                        what a request asks, answered from decisions taken before
 *     hk_sys  hk_lock  hk_wait       the only layer with sockets, a clock and threads:
 *     hk_worker  hk_loop             what may take long, and all else
 *
 * Conventions. Functions that can fail return hk_status_t, results come last and are untouched on failure. Inputs are
 * borrowed for the call; outputs are borrowed until the next call on the same object. Memory comes through hk_alloc_t.
 * Time is an argument, in nanoseconds. There are no globals.
 */
#ifndef HIKYAKU_H
#define HIKYAKU_H

#include "hk_alloc.h"
#include "hk_arena.h"
#include "hk_broker.h"
#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_crc32c.h"
#include "hk_date.h"
#include "hk_files.h"
#include "hk_form.h"
#include "hk_frame.h"
#include "hk_gate.h"
#include "hk_grant.h"
#include "hk_gzip.h"
#include "hk_heap.h"
#include "hk_http1.h"
#include "hk_hub.h"
#include "hk_index.h"
#include "hk_journal.h"
#include "hk_json.h"
#include "hk_keeper.h"
#include "hk_keeping.h"
#include "hk_lock.h"
#include "hk_log.h"
#include "hk_loop.h"
#include "hk_map.h"
#include "hk_matcher.h"
#include "hk_pack.h"
#include "hk_program.h"
#include "hk_sse.h"
#include "hk_status.h"
#include "hk_sys.h"
#include "hk_topic.h"
#include "hk_worker.h"

#endif
