/* Memory that there is not: nothing leaks, nothing that was acknowledged is lost, and the broker lives on. */
#include "hk_broker_fixture.h"
#include "hk_disk.h"

typedef struct talk {
    world_t world;
    client_t sender, receiver, reader;
    bool taken[16]; /* by number of the message: its ACK came */
    bool freed[16]; /* FREE was acknowledged */
    uint64_t deliveries[16];
    uint64_t free_ids[16];
} talk_t;

static bool open_client(world_t *world, client_t *client, const char *identity, uint64_t epoch)
{
    client_connect(world, client);
    if (client->session == NULL) {
        return false;
    }
    return client_hello(client, &(greeting_t){.identity = identity, .epoch = epoch, .heartbeat = 5000}) == HK_OK;
}

static void send(talk_t *talk, uint64_t number, const sending_t *sending)
{
    if (talk->sender.session != NULL && talk->sender.status == HK_OK) {
        char payload[3001] = {0};
        memset(payload, 'x', number % 4 == 3 ? 3000 : 20);
        payload[0] = (char)('a' + number);
        client_send(&talk->sender, number, number % 2 == 0 ? "even" : "odd", payload, sending);
    }
}

static void listen_to(talk_t *talk)
{
    hk_frame_t frame;
    world_turn(&talk->world);
    while (talk->sender.session != NULL && client_next(&talk->sender, &frame)) {
        if (frame.type == HK_FRAME_ACK && frame.bytes.length >= 32 && frame.bytes.at[16] == HK_FRAME_SEND) {
            uint64_t last = frame.flags & HK_ACK_RANGE ? hk_frame_u64(frame.bytes.at + 32) : frame.id;
            for (uint64_t id = frame.id; id <= last; id++) {
                talk->taken[id] = true;
            }
        }
    }
    while (talk->receiver.session != NULL && client_next(&talk->receiver, &frame)) {
        if (frame.type == HK_FRAME_PUSH) {
            push_t push = read_push(&frame);
            talk->deliveries[push.payload.at[0] - 'a'] = push.delivery;
        } else if (frame.type == HK_FRAME_ACK && frame.bytes.length >= 32 && frame.bytes.at[16] == HK_FRAME_FREE) {
            talk->freed[frame.id] = true;
        }
    }
}

/* A little of everything. */
static void converse(talk_t *talk, const hk_disk_t *disk)
{
    world_t *world = &talk->world;
    uint8_t level = disk == NULL ? 0 : 1;
    if (open_client(world, &talk->sender, "alice", 1)) {
        for (uint64_t number = 1; number < 8; number++) {
            send(talk, number, &(sending_t){.sequence = number + (number > 5), .level = level, .priority = 4});
        }
        send(talk, 8, &(sending_t){.level = 0, .delay = 50});
        send(talk, 9, &(sending_t){.level = level, .time_to_live = 100000});
    }
    listen_to(talk);
    if (open_client(world, &talk->receiver, NULL, 0)) {
        client_subscribe(&talk->receiver, 1, "even", 9);
        if (talk->receiver.status == HK_OK) {
            client_subscribe(&talk->receiver, 2, "odd", 9);
        }
    }
    listen_to(talk);
    world_pass(world, 60 * MS);
    listen_to(talk);
    for (uint64_t number = 1; number < 5 && talk->receiver.session != NULL && talk->receiver.status == HK_OK;
         number++) {
        if (talk->deliveries[number] != 0) {
            client_free(&talk->receiver, number, talk->deliveries[number], talk->deliveries[number], 0);
        }
    }
    listen_to(talk);
    if (talk->receiver.session != NULL && talk->receiver.status == HK_OK && talk->deliveries[5] != 0) {
        client_nack(&talk->receiver, 20, talk->deliveries[5], 2, 0, "words");
    }
    if (talk->receiver.session != NULL && talk->receiver.status == HK_OK && talk->deliveries[6] != 0) {
        client_touch(&talk->receiver, 21, talk->deliveries[6], talk->deliveries[6], 7777);
        if (talk->receiver.status == HK_OK) {
            client_nack(&talk->receiver, 22, talk->deliveries[6], 1, 10, "");
        }
    }
    if (talk->sender.session != NULL && talk->sender.status == HK_OK) {
        client_query(&talk->sender, 30, 1, "", 0, 0);
        client_query(&talk->sender, 31, 3, "odd", 0, 0);
        client_query(&talk->sender, 32, 2, "", 9, 0);
    }
    listen_to(talk);
    world_pass(world, 100 * MS);
    listen_to(talk);
    if (talk->receiver.session != NULL) {
        client_gone(&talk->receiver);
    }
    listen_to(talk);
}

/* What was acknowledged and not freed is there. */
static void check_kept(talk_t *talk)
{
    world_t *world = &talk->world;
    bool found[16] = {false};
    client_open(world, &talk->reader, NULL, 0);
    client_query(&talk->reader, 0, 4, "odd", 0, 0);
    client_query(&talk->reader, 0, 4, "even", 0, 0);
    client_subscribe(&talk->reader, 1, "even", 99);
    client_subscribe(&talk->reader, 2, "odd", 99);
    for (int i = 0; i < 20; i++) {
        hk_frame_t frame;
        world_pass(world, 10 * MS);
        world_turn(world);
        while (client_next(&talk->reader, &frame)) {
            if (frame.type == HK_FRAME_PUSH) {
                push_t push = read_push(&frame);
                found[push.payload.at[0] - 'a'] = true;
                client_free(&talk->reader, 0, push.delivery, push.delivery, 0);
            }
        }
    }
    for (int number = 1; number < 10; number++) {
        hk_test_note("message %d", number);
        HK_CHECK(!talk->taken[number] || found[number] || talk->deliveries[number] != 0);
        bool settled = talk->freed[number] || (number < 5 && talk->deliveries[number] != 0);
        HK_CHECK(!talk->taken[number] || settled || found[number]);
        HK_CHECK(!talk->freed[number] || !found[number]);
    }
    hk_test_note("%s", "");
}

HK_TEST(a_broker_without_storage_lives_through_every_failing_allocation)
{
    HK_EACH_FAILING_ALLOCATION {
        talk_t talk = {0};
        hk_broker_options_t options = {.open = true, .secret = {1, 2}};
        hk_status_t status = world_try(&talk.world, &options);
        if (status == HK_OK) {
            converse(&talk, NULL);
            hk_test_not_failing();
            check_kept(&talk);
            (void)world_end(&talk.world, true);
        } else {
            HK_CHECK_STATUS(HK_NO_MEMORY, status);
        }
    }
}

HK_TEST(a_broker_with_storage_lives_through_every_failing_allocation)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_disk_t *disk = hk_disk_new();
        talk_t talk = {0};
        hk_broker_options_t options = {.path = "folder",
                                       .files = &disk->files,
                                       .segment_bytes = HK_JOURNAL_SEGMENT_LEAST,
                                       .open = true,
                                       .secret = {1, 2}};
        hk_status_t status = world_try(&talk.world, &options);
        if (status == HK_OK) {
            converse(&talk, disk);
            hk_test_not_failing();
            world_turn(&talk.world);
            if (hk_broker_trouble(talk.world.broker) == NULL) {
                (void)world_end(&talk.world, true);
                hk_disk_settle(disk);
                HK_CHECK_OK(world_try(&talk.world, &options));
                check_kept(&talk);
            }
            (void)world_end(&talk.world, false);
        } else {
            HK_CHECK_STATUS(HK_NO_MEMORY, status);
        }
        hk_disk_free(disk);
    }
}

HK_TEST(a_journal_is_read_whole_or_not_at_all_when_there_is_no_memory)
{
    hk_disk_t *disk = hk_disk_new();
    hk_broker_options_t options = {.path = "folder",
                                   .files = &disk->files,
                                   .segment_bytes = HK_JOURNAL_SEGMENT_LEAST,
                                   .open = true,
                                   .secret = {1, 2}};
    talk_t talk = {0};
    HK_CHECK_OK(world_try(&talk.world, &options));
    converse(&talk, disk);
    HK_CHECK_OK(world_end(&talk.world, false));
    HK_EACH_FAILING_ALLOCATION {
        hk_disk_t *copy = hk_disk_cut(disk, disk->count, 1);
        options.files = &copy->files;
        hk_status_t status = world_try(&talk.world, &options);
        if (status == HK_OK) {
            hk_broker_stats_t stats;
            hk_broker_read_stats(talk.world.broker, &stats);
            /* All but the four that were freed and the one that was in memory. */
            HK_CHECK_EQUAL_UINT(4, stats.messages);
            (void)world_end(&talk.world, false);
        } else {
            HK_CHECK_STATUS(HK_NO_MEMORY, status);
        }
        hk_disk_free(copy);
    }
    hk_disk_free(disk);
}
