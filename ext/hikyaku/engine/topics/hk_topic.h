/* hk_topic.h: what a topic is, and a table of those that were seen lately.
 *
 * A topic is a string; resolved against the hub's URL it may be a URL with eight components, and it may lie in the
 * namespace that belongs to the hub. The engine splits a topic by itself only when every byte shows that it is
 * canonical already; any other is asked of Ruby once, which hands its components in (hk_topics_add).
 *
 *     https://example.com/books/1      split here
 *     /books/1                         split here, on the hub's origin
 *     urn:x, Books, https://EXAMPLE    HK_UNKNOWN: whoever has a URL parser must say
 *
 * The table is bounded in bytes by two generations, as Hikyaku::Hub::Topics: what was not asked for while half of the
 * bytes were filled anew is forgotten. Who keeps a topic longer than until the next call retains it.
 */
#ifndef HK_TOPIC_H
#define HK_TOPIC_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_list.h"
#include "hk_map.h"
#include "hk_status.h"

#include <stdint.h>

/* The components, in the order of docs/topic-program.md. */
typedef enum hk_url_part {
    HK_URL_PROTOCOL, /* without ":" */
    HK_URL_USERNAME,
    HK_URL_PASSWORD,
    HK_URL_HOSTNAME,
    HK_URL_PORT,
    HK_URL_PATHNAME,
    HK_URL_SEARCH, /* without "?" */
    HK_URL_HASH,   /* without "#" */
    HK_URL_PARTS
} hk_url_part_t;

typedef struct hk_url {
    hk_bytes_t parts[HK_URL_PARTS];
    hk_bytes_t origin; /* "https://example.com:8443": as Hikyaku::URL#origin */
} hk_url_t;

/* hk_index remembers in a topic which patterns select it, unless they are more than these. */
enum { HK_TOPIC_MATCHES = 64 };

/* A pattern entry of an index that selects the topic: see hk_index.h, which alone touches it. */
typedef struct hk_topic_match {
    uint32_t slot;
    uint32_t serial;
} hk_topic_match_t;

typedef struct hk_topic {
    hk_map_node_t node; /* node.key is the topic's value */
    uint32_t references;
    uint32_t records; /* of the log, in which it stands: the log's own */
    bool is_url;
    bool reserved;      /* names the hub's path or something below it */
    uint8_t generation; /* of its table */
    hk_url_t url;       /* empty unless is_url */

    /* hk_index's memory of which patterns select it, true for the patterns up to `matched_until`. */
    uint64_t matched_until;
    hk_topic_match_t *matches;
    uint32_t match_count, match_capacity;

    hk_list_t link; /* in its generation */
    size_t bytes;   /* what it takes at most, what hk_index remembers included */
    size_t beside;  /* bytes of its URL that are no part of its value */
    const hk_alloc_t *alloc;
} hk_topic_t;

static inline hk_bytes_t hk_topic_value(const hk_topic_t *topic)
{
    return topic->node.key;
}

typedef struct hk_topics hk_topics_t;

typedef struct hk_topics_options {
    hk_url_t hub;               /* the hub's URL, parsed; copied */
    hk_bytes_t comparable_path; /* its path as Topic.comparable_path makes it; copied */
    size_t max_bytes;           /* what the table may take */
    uint64_t secret[2];         /* random, for the hashes */
} hk_topics_options_t;

/* Makes a table. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_topics_new(const hk_alloc_t *alloc, const hk_topics_options_t *options, hk_topics_t **topics);

/* Forgets all topics; those that somebody retained live on. NULL is allowed. */
void hk_topics_free(hk_topics_t *topics);

/* The topic for a string: from the table, or split and added to it. O(length).
 *
 * value  any bytes.
 * topic  borrowed until the next call on the table; hk_topic_retain keeps it.
 *
 * HK_OK; HK_UNKNOWN: not canonical, and not handed in lately; HK_NO_MEMORY. */
hk_status_t hk_topics_find(hk_topics_t *topics, hk_bytes_t value, hk_topic_t **topic);

/* Adds a topic whose components somebody else knows; replaces nothing when it is there already.
 *
 * url  NULL when the topic is no URL; copied.
 *
 * HK_OK or HK_NO_MEMORY. `topic` as in hk_topics_find. */
hk_status_t hk_topics_add(hk_topics_t *topics, hk_bytes_t value, const hk_url_t *url, bool reserved,
                          hk_topic_t **topic);

/* How many topics are remembered, and the bytes that they take. */
size_t hk_topics_count(const hk_topics_t *topics);
size_t hk_topics_bytes(const hk_topics_t *topics);

/* A topic of its own, in no table: what the hub itself publishes about. `references` is 1; hk_topic_release frees it.
 *
 * url  NULL when the topic is no URL; copied.
 *
 * HK_OK or HK_NO_MEMORY. */
hk_status_t hk_topic_new(const hk_alloc_t *alloc, hk_bytes_t value, const hk_url_t *url, bool reserved,
                         hk_topic_t **topic);

/* Keeps a topic; returns it. */
hk_topic_t *hk_topic_retain(hk_topic_t *topic);

/* Lets go of a topic, and frees it when nobody keeps it. NULL is allowed. */
void hk_topic_release(hk_topic_t *topic);

/* Splits a canonical topic without a table. Canonical is what the WHATWG URL Standard certainly leaves as it is:
 *
 *     https://example.com:8443/books/1?all#top       http or https; a domain in lower case, without "--"; no port that
 *     /books/1?all#top                               goes without saying; no "." or ".." among the segments; of other
 *                                                    characters only - . _ ~ ! $ & ( ) * + , ; = : @ / ?
 *
 * hub  the hub's URL, for what begins with "/".
 * url  slices of `value`, of `hub`, and of constants.
 *
 * HK_OK, or HK_UNKNOWN. O(length). */
hk_status_t hk_topic_split(hk_bytes_t value, const hk_url_t *hub, hk_url_t *url);

#endif
