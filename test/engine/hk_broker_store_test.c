/* What a broker finds again: after an orderly end, after a crash, after the power failed. */
#include "hk_broker_fixture.h"
#include "hk_disk.h"

static hk_broker_options_t on(const hk_disk_t *disk)
{
    return (hk_broker_options_t){.path = "folder",
                                 .files = &disk->files,
                                 .segment_bytes = HK_JOURNAL_SEGMENT_LEAST,
                                 .open = true,
                                 .level = HK_LEVEL_WRITTEN,
                                 .secret = {1, 2}};
}

static void begin(world_t *world, const hk_disk_t *disk)
{
    hk_broker_options_t options = on(disk);
    world_open(world, &options);
}

/* The same moment, another process. */
static void again(world_t *world, hk_disk_t *disk, bool orderly)
{
    HK_CHECK_OK(world_end(world, orderly));
    hk_disk_settle(disk);
    hk_broker_options_t options = on(disk);
    HK_CHECK_OK(world_try(world, &options));
}

static const sending_t WRITTEN = {.priority = 4, .level = HK_LEVEL_WRITTEN};
static const sending_t SYNCED = {.priority = 4, .level = HK_LEVEL_SYNCED};
static const sending_t MEMORY = {.priority = 4, .level = HK_LEVEL_MEMORY};

/* Two messages. */
static void say_batch(client_t *client, uint64_t id, uint64_t sequence, uint8_t level)
{
    making_t making;
    make_frame(&making, HK_FRAME_SEND_BATCH, 0, 0, id);
    make_number(&making, 8, sequence);
    make_number(&making, 8, 0);
    make_number(&making, 1, 4);
    make_number(&making, 1, level);
    make_bytes(&making, HK_BYTES("\1\0\0\0\0\0q\2\0\0\0\1\0\0\0\0\0a\1\0\0\0\0\0b"));
    HK_CHECK_OK(client_say(client, &making));
}

HK_TEST(levels_are_acknowledged_when_they_are_reached)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, NULL, 0);
    world.no_jobs = true;
    world.no_commit = true;
    client_send(&client, 1, "q", "a", &MEMORY);
    client_send(&client, 2, "q", "b", &WRITTEN);
    client_send(&client, 3, "q", "c", &SYNCED);
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_LEVEL_MEMORY, frame.bytes.at[17]);
    expect_nothing(&client);
    world.no_commit = false;
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(2, frame.id);
    HK_CHECK_EQUAL_INT(HK_LEVEL_WRITTEN, frame.bytes.at[17]);
    expect_nothing(&client);
    world.no_jobs = false;
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(3, frame.id);
    HK_CHECK_EQUAL_INT(HK_LEVEL_SYNCED, frame.bytes.at[17]);
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(what_was_written_is_found_after_a_crash_and_what_was_in_memory_after_an_orderly_end)
{
    for (int orderly = 0; orderly < 2; orderly++) {
        hk_disk_t *disk = hk_disk_new();
        world_t world;
        client_t client;
        begin(&world, disk);
        client_open(&world, &client, NULL, 0);
        client_send(&client, 1, "q", "memory", &MEMORY);
        client_send(&client, 2, "q", "written", &WRITTEN);
        client_send(&client, 3, "q", "done", &WRITTEN);
        client_send(&client, 4, "other", "out", &SYNCED);
        client_subscribe(&client, 1, "q", 3);
        world_turn(&world);
        hk_frame_t frame;
        push_t push = {0};
        while (client_next(&client, &frame)) {
            push = frame.type == HK_FRAME_PUSH ? read_push(&frame) : push;
        }
        HK_CHECK_EQUAL_UINT(3, push.message);
        client_free(&client, 9, push.delivery, push.delivery, 0);
        expect_ack(&client, HK_FRAME_FREE, 9);
        uint64_t session = client.number;
        again(&world, disk, orderly);
        client_open(&world, &client, NULL, 0);
        HK_CHECK(client.number > session);
        client_subscribe(&client, 1, "q", 9);
        if (orderly) {
            expect_push(&client, "memory");
        }
        push = expect_push(&client, "written");
        HK_CHECK_EQUAL_UINT(2, push.message);
        HK_CHECK_EQUAL_UINT(world.wall, push.sent);
        expect_nothing(&client);
        client_subscribe(&client, 2, "other", 9);
        expect_push(&client, "out");
        client_send(&client, 5, "q", "new", &WRITTEN);
        push = expect_push(&client, "new");
        HK_CHECK(push.message > 4);
        world_close(&world);
        hk_disk_free(disk);
    }
}

HK_TEST(failures_words_delays_and_times_to_live_are_found_again)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, NULL, 0);
    client_subscribe(&client, 1, "q", 3);
    client_send(&client, 0, "q", "rejected", &WRITTEN);
    push_t push = expect_push(&client, "rejected");
    client_nack(&client, 0, push.delivery, 1, 1000, "");
    client_send(&client, 0, "q", "killed", &WRITTEN);
    push = expect_push(&client, "killed");
    client_nack(&client, 0, push.delivery, 2, 0, "words");
    client_send(&client, 0, "q", "late", &(sending_t){.delay = 2000, .level = 1});
    client_send(&client, 0, "q", "short", &(sending_t){.delay = 500, .time_to_live = 900, .level = 1});
    world_turn(&world);
    /* The clock is set back by a day meanwhile: nobody waits longer for that. */
    world.wall -= 86400000;
    again(&world, disk, false);
    client_open(&world, &client, NULL, 0);
    client_query(&client, 1, 3, "q", 0, 0);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "\"reason\":3,\"words\":\"words\"", 26) != NULL);
    client_subscribe(&client, 1, "q", 3);
    expect_nothing(&client);
    world_pass(&world, 500 * MS);
    expect_push(&client, "short");
    expect_nothing(&client);
    world_pass(&world, 500 * MS);
    push = expect_push(&client, "rejected");
    HK_CHECK_EQUAL_INT(1, push.failures);
    HK_CHECK_EQUAL_INT(2, push.attempt);
    HK_CHECK_EQUAL_INT(HK_PUSH_AGAIN, push.flags);
    expect_nothing(&client);
    world_pass(&world, 1000 * MS);
    expect_push(&client, "late");
    expect_nothing(&client);
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(numbers_and_epochs_are_remembered_but_those_of_messages_in_memory)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, "alice", 7);
    client_send(&client, 1, "q", "1", &(sending_t){.sequence = 1, .level = 1});
    client_send(&client, 2, "q", "2", &(sending_t){.sequence = 2, .level = 0});
    client_send(&client, 3, "q", "4", &(sending_t){.sequence = 4, .level = 1});
    world_turn(&world);
    again(&world, disk, false);
    client_connect(&world, &client);
    HK_CHECK_STATUS(HK_CLOSED, client_hello(&client, &(greeting_t){.identity = "alice", .epoch = 7}));
    client_gone(&client);
    client_open(&world, &client, "alice", 8);
    HK_CHECK_EQUAL_UINT(1, client.low);
    static const bool taken[] = {true, false, false, true};
    for (uint64_t number = 1; number <= 4; number++) {
        client_send(&client, number, "q", "x", &(sending_t){.sequence = number, .level = 1});
        hk_frame_t frame = expect(&client, HK_FRAME_ACK);
        HK_CHECK_EQUAL_INT(taken[number - 1] ? HK_ACK_DUPLICATE : 0, frame.flags);
    }
    again(&world, disk, true);
    client_open(&world, &client, "alice", 9);
    HK_CHECK_EQUAL_UINT(4, client.low);
    client_send(&client, 5, "q", "x", &(sending_t){.sequence = 4 + 4097, .level = 1});
    expect_error(&client, HK_CODE_SEQUENCE, 5);
    world_close(&world);
    hk_disk_free(disk);
}

/* Sends until so many segments were begun. */
static uint64_t fill(client_t *client, uint64_t segments, const char *queue, uint64_t number)
{
    char payload[2001] = {0};
    memset(payload, 'p', 2000);
    for (uint64_t i = 0; i < segments * 30; i++) {
        snprintf(payload, sizeof(payload), "%u", (unsigned)number++);
        payload[strlen(payload)] = 'p';
        client_send(client, 0, queue, payload, &WRITTEN);
        world_turn(client->world);
    }
    return number;
}

static void free_all(client_t *client)
{
    world_turn(client->world);
    for (hk_frame_t frame; client_next(client, &frame);) {
    }
    client_free(client, 0, 0, UINT64_MAX, 0);
    world_turn(client->world);
}

HK_TEST(segments_go_when_nothing_needs_them_and_stragglers_are_copied)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client, receiver;
    begin(&world, disk);
    client_open(&world, &client, NULL, 0);
    client_open(&world, &receiver, NULL, 0);
    client_send(&client, 0, "old", "straggler", &WRITTEN);
    client_subscribe(&receiver, 1, "old", 1);
    push_t push = expect_push(&receiver, "straggler");
    client_nack(&receiver, 0, push.delivery, 1, 0, "");
    push = expect_push(&receiver, "straggler");
    client_nack(&receiver, 0, push.delivery, 2, 0, "dead, but not forgotten");
    client_subscribe(&client, 1, "q", 1000);
    for (int i = 0; i < 12; i++) {
        fill(&client, 1, "q", 0);
        client_send(&client, 0, "kept", (char[]){(char)('a' + i), 0}, &WRITTEN);
        free_all(&client);
    }
    for (int i = 0; i < 20; i++) {
        world_turn(&world);
    }
    hk_broker_stats_t stats;
    hk_broker_read_stats(world.broker, &stats);
    HK_CHECK(stats.copied > 0);
    HK_CHECK(stats.journal.segments <= 5);
    for (int orderly = 0; orderly < 2; orderly++) {
        again(&world, disk, orderly);
        client_open(&world, &client, NULL, 0);
        client_query(&client, 1, 3, "old", 0, 0);
        hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
        HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "dead, but not forgotten", 23) != NULL);
        hk_broker_read_stats(world.broker, &stats);
        HK_CHECK_EQUAL_UINT(13, stats.messages);
        client_subscribe(&client, 1, "kept", 99);
        for (int i = 0; i < 12; i++) {
            expect_push(&client, (char[]){(char)('a' + i), 0});
        }
    }
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(a_full_disk_refuses_messages_and_takes_frees_until_there_is_room)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    hk_broker_options_t options = on(disk);
    options.max_storage = 4 * HK_JOURNAL_SEGMENT_LEAST;
    world_open(&world, &options);
    client_open(&world, &client, NULL, 0);
    char payload[2001] = {0};
    memset(payload, 'p', 2000);
    uint64_t taken = 0;
    hk_frame_t frame;
    for (bool refused = false; !refused; taken++) {
        HK_CHECK(taken < 1000);
        client_send(&client, 1, "q", payload, &WRITTEN);
        world_turn(&world);
        HK_CHECK(client_next(&client, &frame));
        refused = frame.type == HK_FRAME_ERROR;
    }
    HK_CHECK_EQUAL_INT(HK_CODE_DISK_FULL, hk_frame_u16(frame.bytes.at + 16));
    HK_CHECK(taken > 60);
    client_subscribe(&client, 1, "q", 1000);
    for (uint64_t i = 1; i < taken; i++) {
        expect_push(&client, payload);
    }
    client_free(&client, 5, 0, UINT64_MAX, 3);
    expect_ack(&client, HK_FRAME_FREE, 5);
    for (int i = 0; i < 10; i++) {
        world_pass(&world, SECOND);
        world_turn(&world);
    }
    client_send(&client, 6, "q", payload, &SYNCED);
    bool acknowledged = false;
    world_turn(&world);
    while (client_next(&client, &frame)) {
        HK_CHECK(frame.type != HK_FRAME_ERROR);
        acknowledged = acknowledged || frame.type == HK_FRAME_ACK;
    }
    HK_CHECK(acknowledged);
    world_close(&world);
    hk_disk_free(disk);
}

/* As many identities as there may be, with maps as large as they may be. */
static void number_as_many_as_possible(world_t *world)
{
    client_t client;
    char identity[256] = {0};
    memset(identity, 'i', 255);
    for (uint32_t i = 0; i < hk_broker_identities_most(HK_JOURNAL_SEGMENT_LEAST); i++) {
        identity[snprintf(identity, 4, "%03u", i)] = 'i';
        client_open(world, &client, identity, 1);
        client_send(&client, 1, "q", "x", &(sending_t){.sequence = 4096, .level = 1});
        expect_ack(&client, HK_FRAME_SEND, 1);
        client_gone(&client);
    }
}

HK_TEST(a_full_disk_takes_frees_and_a_restart_whatever_identities_there_are_and_come_again)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    number_as_many_as_possible(&world);
    disk->room = HK_JOURNAL_SEGMENT_LEAST;
    client_open(&world, &client, NULL, 0);
    char payload[501] = {0}, identity[256] = {0};
    memset(payload, 'p', 500);
    hk_frame_t frame = {.type = HK_FRAME_ACK};
    for (int i = 0; i < 1000 && frame.type == HK_FRAME_ACK; i++) {
        client_send(&client, 1, "q", payload, &WRITTEN);
        world_turn(&world);
        HK_CHECK(client_next(&client, &frame));
    }
    HK_CHECK(frame.type == HK_FRAME_ERROR);
    memset(identity, 'i', 255);
    memcpy(identity, "007", 3);
    for (uint64_t epoch = 2; epoch < 200; epoch++) {
        client_t again_and_again;
        client_open(&world, &again_and_again, identity, epoch);
        client_gone(&again_and_again);
        world_turn(&world);
    }
    disk->room = 0;
    uint64_t messages = world_stats(&world).messages;
    for (uint64_t i = 0; i < 8; i++) {
        again(&world, disk, false);
        HK_CHECK_EQUAL_UINT(messages - i, world_stats(&world).messages);
        client_open(&world, &client, NULL, 0);
        client_subscribe(&client, 1, "q", 1);
        world_turn(&world);
        HK_CHECK(client_next(&client, &frame));
        HK_CHECK(frame.type == HK_FRAME_PUSH);
        client_free(&client, 5, 0, UINT64_MAX, 2);
        world_turn(&world);
        bool acknowledged = false;
        while (client_next(&client, &frame)) {
            acknowledged = acknowledged || frame.type == HK_FRAME_ACK;
        }
        HK_CHECK(acknowledged);
    }
    HK_CHECK_EQUAL_UINT(hk_broker_identities_most(HK_JOURNAL_SEGMENT_LEAST), world_stats(&world).identities);
    disk->room = SIZE_MAX;
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(a_disk_that_was_full_is_looked_at_again_though_time_brings_nothing_else)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    hk_broker_options_t options = on(disk);
    world_open(&world, &options);
    client_open(&world, &client, NULL, 0);
    disk->room = 2 * HK_JOURNAL_SEGMENT_LEAST;
    char payload[2001] = {0};
    memset(payload, 'p', 2000);
    hk_frame_t frame;
    for (int i = 0; i < 400; i++) {
        client_send(&client, 1, "q", payload, &WRITTEN);
        world_turn(&world);
        HK_CHECK(client_next(&client, &frame));
    }
    HK_CHECK(frame.type == HK_FRAME_ERROR);
    disk->room = SIZE_MAX;
    for (int i = 0; i < 5 && frame.type == HK_FRAME_ERROR; i++) {
        int64_t at = hk_broker_next_tick(world.broker);
        HK_CHECK(at <= world.now + 2 * SECOND);
        world_pass(&world, at > world.now ? at - world.now : 0);
        world_turn(&world);
        client_send(&client, 2, "q", payload, &WRITTEN);
        world_turn(&world);
        HK_CHECK(client_next(&client, &frame));
    }
    HK_CHECK(frame.type == HK_FRAME_ACK);
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(messages_whose_bytes_are_on_the_disk_alone_are_read_again)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client, receiver;
    hk_broker_options_t options = on(disk);
    options.max_memory = 64 * 1024; /* room for 600 messages on the disk, and less than a piece for their contents */
    world_open(&world, &options);
    client_open(&world, &client, NULL, 0);
    fill(&client, 20, "q", 0);
    client_open(&world, &receiver, NULL, 0);
    receiver.most = 5000;
    client_subscribe(&receiver, 1, "q", 100000);
    for (unsigned i = 0; i < 600; i++) {
        hk_frame_t frame = expect(&receiver, HK_FRAME_PUSH);
        push_t push = read_push(&frame);
        char number[16];
        snprintf(number, sizeof(number), "%up", i);
        HK_CHECK_EQUAL_UINT(2000, push.payload.length);
        HK_CHECK(hk_bytes_start_with(push.payload, hk_test_text(number)));
    }
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(when_the_storage_fails_everybody_is_told_and_nothing_is_acknowledged)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, NULL, 0);
    disk->fail_at = 1;
    disk->error = EIO;
    disk->fails_on = true;
    client_send(&client, 3, "q", "x", &SYNCED);
    expect_error(&client, HK_CODE_FAILED, 0);
    HK_CHECK_STATUS(HK_SYSTEM, world.committed);
    HK_CHECK(hk_session_over(client.session));
    HK_CHECK(hk_broker_trouble(world.broker) != NULL);
    client_gone(&client);
    client_connect(&world, &client);
    HK_CHECK_STATUS(HK_CLOSED, client_hello(&client, &(greeting_t){0}));
    expect_error(&client, HK_CODE_FAILED, 1);
    HK_CHECK_STATUS(HK_SYSTEM, world_end(&world, true));
    hk_disk_free(disk);
}

HK_TEST(a_free_outlives_the_segment_in_which_its_message_stands)
{
    for (int state = 0; state < 2; state++) {
        hk_disk_t *disk = hk_disk_new();
        world_t world;
        client_t client, receiver;
        begin(&world, disk);
        client_open(&world, &client, NULL, 0);
        client_open(&world, &receiver, NULL, 0);
        client_send(&client, 0, "once", "b", &WRITTEN);
        /* So much is needed that nothing is worth copying. */
        fill(&client, 6, "kept", 0);
        client_subscribe(&client, 1, "q", 1000);
        for (int i = 0; i < 2; i++) {
            fill(&client, 1, "q", 0);
            free_all(&client);
        }
        client_subscribe(&receiver, 1, "once", 1);
        push_t push = expect_push(&receiver, "b");
        if (state == 0) {
            client_free(&receiver, 0, push.delivery, push.delivery, 0);
        } else {
            client_nack(&receiver, 0, push.delivery, 2, 0, "");
        }
        for (int i = 0; i < 6; i++) {
            fill(&client, 1, "q", 0);
            free_all(&client);
        }
        again(&world, disk, false);
        client_open(&world, &client, NULL, 0);
        client_subscribe(&client, 1, "once", 9);
        expect_nothing(&client);
        world_close(&world);
        hk_disk_free(disk);
    }
}

HK_TEST(a_number_taken_in_memory_is_acknowledged_at_no_other_level)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, "alice", 1);
    client_send(&client, 1, "q", "1", &(sending_t){.sequence = 1, .level = 0});
    expect_ack(&client, HK_FRAME_SEND, 1);
    client_send(&client, 2, "q", "2", &(sending_t){.sequence = 2, .level = 1});
    expect_ack(&client, HK_FRAME_SEND, 2);
    static const int levels[] = {HK_LEVEL_MEMORY, HK_LEVEL_SYNCED};
    for (uint64_t number = 1; number <= 2; number++) {
        client_send(&client, 10 + number, "q", "x", &(sending_t){.sequence = number, .level = 2});
        hk_frame_t frame = expect(&client, HK_FRAME_ACK);
        HK_CHECK_EQUAL_UINT(10 + number, frame.id);
        HK_CHECK_EQUAL_INT(HK_ACK_DUPLICATE, frame.flags);
        HK_CHECK_EQUAL_INT(levels[number - 1], frame.bytes.at[17]);
    }
    for (uint64_t first = 1; first <= 2; first++) {
        say_batch(&client, 20, first, HK_LEVEL_SYNCED);
        hk_frame_t frame = expect(&client, HK_FRAME_ACK);
        HK_CHECK_EQUAL_INT(HK_ACK_DUPLICATE, frame.flags);
        HK_CHECK_EQUAL_INT(levels[first - 1], frame.bytes.at[17]);
    }
    again(&world, disk, true);
    client_open(&world, &client, "alice", 2);
    client_send(&client, 1, "q", "x", &(sending_t){.sequence = 1, .level = 2});
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_ACK_DUPLICATE, frame.flags);
    HK_CHECK_EQUAL_INT(HK_LEVEL_SYNCED, frame.bytes.at[17]);
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(the_messages_of_a_batch_count_in_the_window)
{
    hk_disk_t *disk = hk_disk_new();
    hk_broker_options_t options = on(disk);
    options.window_messages = 4;
    world_t world;
    client_t client;
    world_open(&world, &options);
    client_open(&world, &client, NULL, 0);
    world.no_commit = true;
    say_batch(&client, 0, 0, HK_LEVEL_SYNCED);
    HK_CHECK(!hk_session_full(client.session));
    say_batch(&client, 1, 0, HK_LEVEL_MEMORY);
    expect_ack(&client, HK_FRAME_SEND_BATCH, 1);
    HK_CHECK(!hk_session_full(client.session));
    say_batch(&client, 2, 0, HK_LEVEL_SYNCED);
    HK_CHECK(!hk_session_full(client.session));
    say_batch(&client, 3, 0, HK_LEVEL_SYNCED);
    HK_CHECK(hk_session_full(client.session));
    client_send(&client, 4, "q", "x", &SYNCED);
    expect_error(&client, HK_CODE_OVERLOADED, 4);
    world.no_commit = false;
    expect_ack(&client, HK_FRAME_SEND_BATCH, 2);
    expect_ack(&client, HK_FRAME_SEND_BATCH, 3);
    HK_CHECK(!hk_session_full(client.session));
    client_send(&client, 5, "q", "x", &SYNCED);
    expect_ack(&client, HK_FRAME_SEND, 5);
    world_close(&world);
    hk_disk_free(disk);
}

HK_TEST(while_a_segment_is_in_the_making_senders_are_told_to_come_again_soon)
{
    hk_disk_t *disk = hk_disk_new();
    world_t world;
    client_t client;
    begin(&world, disk);
    client_open(&world, &client, NULL, 0);
    world.no_jobs = true;
    static char payload[8001];
    memset(payload, 'x', sizeof(payload) - 1);
    hk_frame_t frame = {.type = HK_FRAME_ACK};
    for (uint64_t id = 2; id < 100 && frame.type == HK_FRAME_ACK; id++) {
        client_send(&client, id, "q", payload, &WRITTEN);
        world_turn(&world);
        if (!client_next(&client, &frame)) {
            frame.type = HK_FRAME_ACK;
        }
    }
    HK_CHECK_EQUAL_INT(HK_FRAME_ERROR, frame.type);
    HK_CHECK_EQUAL_INT(HK_CODE_OVERLOADED, hk_frame_u16(frame.bytes.at + 16));
    HK_CHECK_EQUAL_UINT(250, hk_frame_u32(frame.bytes.at + 20));
    world.no_jobs = false;
    world_turn(&world);
    while (client_next(&client, &frame)) {
        HK_CHECK_EQUAL_INT(HK_FRAME_ACK, frame.type);
    }
    client_send(&client, 100, "q", payload, &WRITTEN);
    expect_ack(&client, HK_FRAME_SEND, 100);
    world_close(&world);
    hk_disk_free(disk);
}
