#include "hk_loop_broker_private.h"

/* --- the loop's thread -------------------------------------------------------------------------------------------- */

/* NULL: there is no memory. */
static hk_hello_ask_t *make(hk_loop_t *loop, const hk_hello_t *hello)
{
    size_t bytes = hello->identity.length + hello->credentials.length + hello->agent.length + hello->address.length;
    hk_hello_ask_t *ask = hk_alloc_new(loop->alloc, sizeof(*ask) + bytes);
    if (ask != NULL) {
        char *at = (char *)(ask + 1);
        *ask = (hk_hello_ask_t){.wish.kind = HK_WISH_HELLO, .hello = *hello};
        ask->hello.identity = hk_loop_place(&at, hello->identity);
        ask->hello.credentials = hk_loop_place(&at, hello->credentials);
        ask->hello.agent = hk_loop_place(&at, hello->agent);
        ask->hello.address = hk_loop_place(&at, hello->address);
    }
    return ask;
}

static void enqueue(hk_loop_t *loop, hk_hello_ask_t *ask)
{
    loop->brokerage->hello_count++;
    pthread_mutex_lock(&loop->mutex);
    hk_list_append(&loop->hellos, &ask->wish.link);
    pthread_cond_signal(&loop->greeted);
    pthread_mutex_unlock(&loop->mutex);
}

void hk_hellos_ask(hk_loop_t *loop)
{
    hk_broker_t *broker = loop->brokerage->broker;
    hk_hello_t hello;
    while (loop->brokerage->hello_count < HK_HELLOS && hk_broker_asking(broker, &hello)) {
        hk_hello_ask_t *ask = make(loop, &hello);
        if (ask != NULL) {
            enqueue(loop, ask);
        } else {
            (void)hk_broker_refuse(broker, hello.serial, HK_BYTES("the broker has no memory"));
        }
    }
}

/* Who has gone meanwhile is not found. */
void hk_hello_decided(hk_loop_t *loop, hk_hello_ask_t *ask)
{
    hk_broker_t *broker = hk_loop_broker(loop);
    hk_status_t status = HK_UNKNOWN;
    hk_bytes_t sentence = hk_bytes(ask->sentence, ask->sentence_length);
    if (ask->permissions != NULL) {
        status = hk_broker_permit(broker, ask->hello.serial, ask->permissions, ask->permission_count, ask->until,
                                  loop->now, hk_loop_wall_ms(loop));
        sentence = HK_BYTES("the broker has no memory");
    }
    if (status == HK_UNKNOWN || status == HK_NO_MEMORY) {
        (void)hk_broker_refuse(broker, ask->hello.serial, sentence);
    }
    loop->brokerage->hello_count--;
    hk_hello_free(loop, ask);
}

/* --- any thread --------------------------------------------------------------------------------------------------- */

void hk_hello_free(hk_loop_t *loop, hk_hello_ask_t *ask)
{
    hk_alloc_free(loop->alloc, ask->permissions);
    hk_alloc_free(loop->alloc, ask);
}

hk_status_t hk_loop_next_hello(hk_loop_t *loop, int64_t timeout, hk_hello_ask_t **ask)
{
    hk_list_t *link;
    hk_status_t status = hk_loop_await(loop, &loop->hellos, &loop->greeted, &loop->taken_hellos, timeout, &link);
    if (status == HK_OK) {
        *ask = HK_OWNER(link, hk_hello_ask_t, wish.link);
    }
    return status;
}

const hk_hello_t *hk_hello_ask_hello(const hk_hello_ask_t *ask)
{
    return &ask->hello;
}

static void send_back(hk_loop_t *loop, hk_hello_ask_t *ask)
{
    pthread_mutex_lock(&loop->mutex);
    hk_list_remove(&ask->wish.link);
    bool heard = !loop->closed_to_wishes;
    if (heard) {
        hk_list_append(&loop->inbox, &ask->wish.link);
    }
    pthread_mutex_unlock(&loop->mutex);
    if (heard) {
        hk_loop_wake(loop);
    } else {
        hk_hello_free(loop, ask);
    }
}

/* One block; none is needed for nothing, but NULL would be a refusal. */
static hk_permission_t *copy(hk_loop_t *loop, const hk_permission_t *permissions, size_t count)
{
    size_t bytes = (count + 1) * sizeof(*permissions);
    for (size_t i = 0; i < count; i++) {
        bytes += permissions[i].pattern.length;
    }
    hk_permission_t *copies = hk_alloc_new(loop->alloc, bytes);
    if (copies != NULL) {
        char *at = (char *)(copies + count);
        for (size_t i = 0; i < count; i++) {
            copies[i] = permissions[i];
            copies[i].pattern = hk_loop_place(&at, permissions[i].pattern);
        }
    }
    return copies;
}

hk_status_t hk_loop_permit(hk_loop_t *loop, hk_hello_ask_t *ask, const hk_permission_t *permissions, size_t count,
                           uint64_t until)
{
    ask->permissions = copy(loop, permissions, count);
    if (ask->permissions == NULL) {
        hk_loop_refuse(loop, ask, HK_BYTES("the broker has no memory"));
        return HK_NO_MEMORY;
    }
    ask->permission_count = count;
    ask->until = until;
    send_back(loop, ask);
    return HK_OK;
}

void hk_loop_refuse(hk_loop_t *loop, hk_hello_ask_t *ask, hk_bytes_t sentence)
{
    char *at = ask->sentence;
    sentence.length = sentence.length < HK_SENTENCE_BYTES ? sentence.length : HK_SENTENCE_BYTES;
    ask->sentence_length = hk_loop_place(&at, sentence).length;
    send_back(loop, ask);
}
