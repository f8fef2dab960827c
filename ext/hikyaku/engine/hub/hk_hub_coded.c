#include "hk_hub_state.h"

#include "hk_pack.h"

/* KEPT       bytes that a subscriber whose socket is full may have waiting without being counted: no more than the
 *            kernel holds for it anyway; and of an event that is kept as it was made.
 * MOST_HELD  those that are counted, of all subscribers together. Who would have more loses its stream, as of a large
 *            event that the ring has dropped. */
enum { KEPT = 64 * 1024, MOST_HELD = 16 * 1024 * 1024 };

static unsigned variant_of(const hk_coded_t *coded)
{
    return (coded->form == HK_STREAM_MESSAGE_PACK ? HK_VARIANT_FORM : 0u) |
           (coded->coding == HK_STREAM_GZIP ? HK_VARIANT_GZIP : 0u);
}

unsigned hk_hub_variant(hk_subscriber_t *subscriber, const hk_grant_t *grant)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    if (coded == NULL) {
        return 0;
    }
    bool grouped = coded->coding == HK_STREAM_GZIP && grant->subscription_count == 1 && grant->read_count == 0 &&
                   coded->naming != HK_NAMING;
    return variant_of(coded) | (grouped ? HK_VARIANT_GROUPED : 0u);
}

/* -- Coming and going ---------------------------------------------------------------------------------------------- */

static hk_status_t make_coding(hk_hub_t *hub)
{
    hk_coding_t *made = hk_alloc_zeroed(hub->alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    for (unsigned i = 0; i < HK_VARIANTS; i++) {
        hk_map_init(&made->feeds[i], hub->alloc, hub->feeds.secret);
    }
    for (unsigned i = 0; i < HK_VARIANT_GROUPED; i++) {
        for (unsigned j = 0; j < HK_RENDERED_KEPT; j++) {
            hk_buf_init(&made->rendered[i][j].bytes, hub->alloc);
        }
    }
    hk_map_init(&made->groups, hub->alloc, hub->feeds.secret);
    hk_buf_init(&made->packed, hub->alloc);
    hk_buf_init(&made->together, hub->alloc);
    hub->coding = made;
    return HK_OK;
}

void hk_hub_free_coding(hk_hub_t *hub)
{
    hk_coding_t *coding = hub->coding;
    if (coding == NULL) {
        return;
    }
    for (unsigned i = 0; i < HK_VARIANTS; i++) {
        hk_map_release(&coding->feeds[i]);
    }
    for (unsigned i = 0; i < HK_VARIANT_GROUPED; i++) {
        for (unsigned j = 0; j < HK_RENDERED_KEPT; j++) {
            hk_buf_release(&coding->rendered[i][j].bytes);
        }
        hk_control_release(hub->alloc, coding->comments[i].control);
        hk_control_release(hub->alloc, coding->openings[i].control);
    }
    hk_control_release(hub->alloc, coding->head);
    hk_map_release(&coding->groups);
    hk_gzip_free(coding->blocks);
    hk_buf_release(&coding->packed);
    hk_buf_release(&coding->together);
    hk_alloc_free(hub->alloc, coding);
    hub->coding = NULL;
}

static hk_status_t make_opening(hk_hub_t *hub, unsigned variant)
{
    hk_coding_t *coding = hub->coding;
    hk_said_t made = coding->comments[variant];
    hk_buf_t *bytes = &coding->together;
    hk_buf_clear(bytes);
    hk_status_t status = hk_buf_append(bytes, HK_GZIP_HEAD);
    if (status == HK_OK) {
        status = hk_buf_append(bytes, hk_bytes(made.control->bytes, made.control->length));
    }
    if (status == HK_OK) {
        status = hk_control_new(hub->alloc, hk_buf_bytes(bytes), &made.control);
    }
    if (status == HK_OK) {
        coding->openings[variant] = made;
    }
    return status;
}

hk_status_t hk_hub_prepare_coding(hk_hub_t *hub, hk_stream_form_t form, hk_stream_coding_t coding, bool naming)
{
    hk_coded_t coded = {.form = (uint8_t)form, .coding = (uint8_t)coding};
    unsigned variant = variant_of(&coded);
    bool needed = variant != 0 || naming;
    hk_status_t status = !needed || hub->coding != NULL ? HK_OK : make_coding(hub);
    if (status == HK_OK && coding == HK_STREAM_GZIP && hub->coding->blocks == NULL) {
        status = hk_gzip_new(hub->alloc, HK_GZIP_BLOCKS, &hub->coding->blocks);
    }
    if (status == HK_OK && coding == HK_STREAM_GZIP && hub->coding->head == NULL) {
        status = hk_control_new(hub->alloc, HK_GZIP_HEAD, &hub->coding->head);
    }
    if (status == HK_OK && needed && hub->coding->comments[variant].control == NULL) {
        status = hk_hub_encode(hub, variant, HK_SSE_HEARTBEAT, &hub->coding->comments[variant]);
    }
    if (status == HK_OK && coding == HK_STREAM_GZIP && hub->coding->openings[variant].control == NULL) {
        status = make_opening(hub, variant);
    }
    return status;
}

void hk_hub_begin_coded(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    if (coded != NULL && coded->coding == HK_STREAM_GZIP) {
        hk_subscriber_share(subscriber, hub->coding->head);
    }
}

bool hk_hub_beat(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    if (subscriber->control == NULL) {
        hk_hub_share(hub, subscriber, hk_hub_comment(hub, subscriber));
    } else if (coded != NULL && subscriber->control == hub->coding->head && subscriber->spoken == 0) {
        hk_hub_share(hub, subscriber, &hub->coding->openings[variant_of(coded)]);
    } else {
        return false;
    }
    return true;
}

bool hk_hub_silent(hk_subscriber_t *subscriber)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    size_t head = coded != NULL && coded->coding == HK_STREAM_GZIP ? HK_GZIP_HEAD_BYTES : 0;
    return hk_subscriber_control(subscriber).length <= head;
}

/* -- Forms and codings --------------------------------------------------------------------------------------------- */

/* A part of an event stream in a form; borrowed until the next call. */
static hk_status_t in_form(hk_hub_t *hub, unsigned variant, hk_bytes_t events, hk_bytes_t *bytes)
{
    *bytes = events;
    if ((variant & HK_VARIANT_FORM) == 0) {
        return HK_OK;
    }
    hk_buf_t *packed = &hub->coding->packed;
    hk_buf_clear(packed);
    hk_status_t status = hk_pack_append(packed, events);
    *bytes = hk_buf_bytes(packed);
    return status;
}

/* Appends a part of an event stream in a form and a coding. */
static hk_status_t append(hk_hub_t *hub, unsigned variant, hk_bytes_t events, hk_buf_t *out, hk_gzip_sum_t *sum)
{
    hk_bytes_t bytes;
    if (in_form(hub, variant, events, &bytes) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if ((variant & HK_VARIANT_GZIP) == 0) {
        return hk_buf_append(out, bytes);
    }
    *sum = hk_gzip_sum(bytes);
    return hk_gzip_block(hub->coding->blocks, bytes, out);
}

hk_status_t hk_hub_encode(hk_hub_t *hub, unsigned variant, hk_bytes_t events, hk_said_t *said)
{
    hk_said_t made = {0};
    hk_buf_t bytes;
    if (variant == 0) {
        return hk_control_new(hub->alloc, events, &said->control);
    }
    hk_buf_init(&bytes, hub->alloc);
    hk_status_t status = append(hub, variant, events, &bytes, &made.sum);
    if (status == HK_OK) {
        status = hk_control_new(hub->alloc, hk_buf_bytes(&bytes), &made.control);
    }
    hk_buf_release(&bytes);
    if (status == HK_OK) {
        made.behind = hk_gzip_behind(made.sum.length);
        *said = made;
    }
    return status;
}

static void forget(hk_rendered_t *rendered)
{
    rendered->position = 0;
    hk_buf_clear(&rendered->bytes);
    if (rendered->bytes.capacity > KEPT) {
        hk_buf_release(&rendered->bytes);
    }
}

static void keep_one_large(hk_rendered_t **large, hk_rendered_t *made)
{
    if (made->bytes.capacity > KEPT) {
        if (*large != NULL && *large != made) {
            forget(*large);
        }
        *large = made;
    }
}

hk_status_t hk_hub_render(hk_hub_t *hub, unsigned variant, const hk_record_t *record, const hk_rendered_t **rendered)
{
    unsigned kind = variant & (HK_VARIANT_GROUPED - 1);
    hk_rendered_t *found = &hub->coding->rendered[kind][record->position % HK_RENDERED_KEPT];
    if (found->position != record->position) {
        forget(found);
        if (append(hub, variant, record->frame, &found->bytes, &found->sum) != HK_OK) {
            hk_buf_clear(&found->bytes);
            return HK_NO_MEMORY;
        }
        found->position = record->position;
        found->behind = hk_gzip_behind(found->sum.length);
        keep_one_large(&hub->coding->large[kind], found);
    }
    *rendered = found;
    return HK_OK;
}

/* -- What is said to one alone ------------------------------------------------------------------------------------- */

static void step_out(hk_coded_t *coded)
{
    if (coded->epoch != 0) {
        coded->sum = hk_gzip_join(coded->sum, coded->in, hk_gzip_behind(coded->in.length));
        coded->in = (hk_gzip_sum_t){0, 0};
        coded->epoch = 0;
    }
}

/* What was taken lies in an epoch that may be gone when it is reported as written. */
static void keep_taken(hk_hub_t *hub)
{
    hk_taken_t *taken = &hub->taken;
    hk_buf_t *copy = &hub->coding->together;
    hk_buf_clear(copy);
    if (hk_buf_append(copy, hk_bytes(taken->at, taken->length)) == HK_OK) {
        taken->at = hk_buf_bytes(copy).at;
    } else {
        hk_hub_close(hub, taken->subscriber, HK_CLOSING_OVERRUN);
        taken->subscriber = NULL;
    }
}

/* What was taken for it from an epoch counts as what it got alone. */
void hk_hub_step_out(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_coded_t *coded = hk_hub_coded(subscriber);
    hk_taken_t *taken = &hub->taken;
    if (coded == NULL) {
        return;
    }
    if (taken->subscriber == subscriber && taken->epoch != 0) {
        taken->sum = taken->epoch == coded->epoch ? hk_gzip_rest(taken->sum, coded->in) : taken->sum;
        taken->epoch = 0;
        keep_taken(hub);
    }
    step_out(coded);
}

/* So much was said in blocks: until the next epoch it is in step with none. */
static void count_alone(hk_coded_t *coded, hk_gzip_sum_t sum, uint32_t behind)
{
    step_out(coded);
    coded->sum = hk_gzip_join(coded->sum, sum, behind);
}

void hk_hub_count_in_step(hk_subscriber_t *subscriber, hk_gzip_sum_t sum, uint64_t epoch)
{
    hk_coded_t *coded = hk_subscriber_coded(subscriber);
    if (coded->epoch != epoch) {
        coded->sum = hk_gzip_join(coded->sum, coded->in, hk_gzip_behind(coded->in.length));
        coded->epoch = epoch;
    }
    coded->in = sum;
}

const hk_said_t *hk_hub_comment(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    return coded != NULL ? &hub->coding->comments[variant_of(coded)] : &hub->comment;
}

void hk_hub_share(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_said_t *said)
{
    (void)hub;
    hk_coded_t *coded = hk_hub_coded(subscriber);
    if (coded != NULL) {
        count_alone(coded, said->sum, said->behind);
    }
    hk_subscriber_share(subscriber, said->control);
}

hk_status_t hk_hub_say(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t events)
{
    hk_coded_t *coded = hk_hub_coded(subscriber);
    hk_said_t said = {0};
    if (coded == NULL) {
        return hk_subscriber_say(hub->alloc, subscriber, events);
    }
    hk_status_t status = hk_hub_encode(hub, variant_of(coded), events, &said);
    if (status == HK_OK) {
        status = hk_subscriber_say(hub->alloc, subscriber, hk_bytes(said.control->bytes, said.control->length));
    }
    if (status == HK_OK) {
        count_alone(coded, said.sum, said.behind);
    }
    hk_control_release(hub->alloc, said.control);
    return status;
}

hk_status_t hk_hub_farewell(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t last, hk_buf_t *out)
{
    hk_coded_t *coded = hk_hub_coded(subscriber);
    char tail[HK_GZIP_TAIL_BYTES];
    if (coded == NULL) {
        hk_status_t status = hk_buf_append(out, hk_subscriber_control(subscriber));
        return status == HK_OK ? hk_buf_append(out, last) : status;
    }
    if (last.length > 0 && hk_hub_say(hub, subscriber, last) != HK_OK) {
        return HK_NO_MEMORY;
    }
    step_out(coded);
    hk_gzip_tail(coded->sum, tail);
    hk_status_t status = hk_buf_append(out, hk_subscriber_control(subscriber));
    return status == HK_OK && coded->coding == HK_STREAM_GZIP ? hk_buf_append(out, hk_bytes(tail, sizeof(tail)))
                                                              : status;
}

hk_status_t hk_hub_farewell_to_gone(hk_hub_t *hub, uint64_t serial, hk_bytes_t last, hk_buf_t *out)
{
    hk_stream_form_t form;
    hk_stream_coding_t coding;
    hk_gzip_sum_t sum = {0, 0};
    char tail[HK_GZIP_TAIL_BYTES];
    hk_roster_form(serial, &form, &coding);
    hk_coded_t coded = {.form = (uint8_t)form, .coding = (uint8_t)coding};
    unsigned variant = variant_of(&coded);
    if (variant == 0) {
        return hk_buf_append(out, last);
    }
    if (hub->coding == NULL || hub->coding->comments[variant].control == NULL) {
        return HK_NOT_FOUND;
    }
    size_t before = out->length;
    hk_status_t status = coding == HK_STREAM_GZIP ? hk_buf_append(out, HK_GZIP_HEAD) : HK_OK;
    if (status == HK_OK) {
        status = append(hub, variant, last, out, &sum);
    }
    if (status == HK_OK && coding == HK_STREAM_GZIP) {
        hk_gzip_tail(sum, tail);
        status = hk_buf_append(out, hk_bytes(tail, sizeof(tail)));
    }
    out->length = status == HK_OK ? out->length : before;
    return status;
}

/* -- What a socket did not take ------------------------------------------------------------------------------------ */

void hk_hub_let_go(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_coded_t *coded = hk_hub_coded(subscriber);
    if (coded != NULL && coded->held > 0) {
        hub->coding->held -= coded->held;
        coded->held = 0;
    }
}

static bool hold(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t rest)
{
    hk_coded_t *coded = hk_subscriber_coded(subscriber);
    if (rest.length > KEPT) {
        if (rest.length > MOST_HELD - hub->coding->held) {
            return false;
        }
        hub->coding->held += rest.length;
        coded->held = (uint32_t)rest.length;
    }
    return hk_subscriber_say(hub->alloc, subscriber, rest) == HK_OK;
}

void hk_hub_wrote_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_taken_t *taken, size_t count)
{
    hk_coded_t *coded = hk_subscriber_coded(subscriber);
    hk_epoch_t *epoch = hk_hub_epoch_of(subscriber);
    if (count == 0) {
        return;
    }
    if (taken->epoch != 0) {
        hk_hub_count_in_step(subscriber, taken->sum, taken->epoch);
    } else {
        count_alone(coded, taken->sum, hk_gzip_behind(taken->sum.length));
    }
    if (epoch != NULL && taken->epoch == epoch->number) {
        hk_epoch_got(epoch);
    } else if (epoch != NULL) {
        hk_epoch_missed(epoch, taken->count);
    }
    subscriber->cursor = taken->to;
    hub->deliveries += taken->count;
    if (count < taken->length && !hold(hub, subscriber, hk_bytes(taken->at + count, taken->length - count))) {
        hk_hub_close(hub, subscriber, HK_CLOSING_OVERRUN);
    }
}
