#include "hk_test.h"

#include "hk_map.h"

#include <stdio.h>

static const uint64_t secret[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)};

typedef struct thing {
    hk_map_node_t node;
    char key[24];
    bool present;
    unsigned visits;
} thing_t;

static hk_bytes_t name(thing_t *thing, size_t number)
{
    *thing = (thing_t){.present = false};
    return hk_bytes(thing->key, (size_t)snprintf(thing->key, sizeof(thing->key), "thing/%zu", number));
}

static void visit(void *context, hk_map_node_t *node)
{
    size_t *count = context;
    ++*count;
    ((thing_t *)node)->visits++;
}

static size_t visits_of(hk_map_t *map)
{
    size_t count = 0;
    hk_map_each(map, visit, &count);
    return count;
}

static hk_bytes_t counted(char bytes[static 64], size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (char)i;
    }
    return hk_bytes(bytes, length);
}

HK_TEST(the_hash_is_siphash_1_3)
{
    /* 00 01 02 …, hashed with a key of zeros by Python 3.11, with 00 … 0F by the test vectors of Rust. */
    static const struct {
        size_t length;
        uint64_t secret[2], hash;
    } vectors[] = {
        {0, {0, 0}, UINT64_C(0xD1FBA762150C532C)},
        {1, {0, 0}, UINT64_C(0x68A914128E01E473)},
        {7, {0, 0}, UINT64_C(0x2F098AB0C751325A)},
        {8, {0, 0}, UINT64_C(0xEAD411E67EBE2EEA)},
        {9, {0, 0}, UINT64_C(0x75927F9D95124362)},
        {15, {0, 0}, UINT64_C(0xF30EB725BB91C9EA)},
        {16, {0, 0}, UINT64_C(0x8972188433A5C5B7)},
        {17, {0, 0}, UINT64_C(0x4883C49A2C009C1D)},
        {63, {0, 0}, UINT64_C(0x385D3E39E5F37359)},
        {0, {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)}, UINT64_C(0xABAC0158050FC4DC)},
        {1, {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)}, UINT64_C(0xC9F49BF37D57CA93)},
        {2, {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)}, UINT64_C(0x82CB9B024DC7D44D)},
    };
    char bytes[64];
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        hk_test_note("vector %zu", i);
        HK_CHECK_EQUAL_UINT(vectors[i].hash, hk_hash(vectors[i].secret, counted(bytes, vectors[i].length)));
    }
    static const uint64_t zeros[2] = {0, 0};
    HK_CHECK_EQUAL_UINT(UINT64_C(0x81CF5BB44A8418F8), hk_hash(zeros, HK_BYTES("caf\xC3\xA9 \xFF\xFE\xFD")));
}

HK_TEST(the_hash_reads_no_byte_beyond_the_key)
{
    char bytes[64];
    for (size_t length = 0; length < sizeof(bytes); length++) {
        hk_bytes_t key = counted(bytes, length), guarded = hk_test_guarded(key);
        HK_CHECK_EQUAL_UINT(hk_hash(secret, key), hk_hash(secret, guarded));
    }
}

HK_TEST(an_empty_map_has_no_memory_and_finds_nothing)
{
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    HK_CHECK(hk_map_find(&map, HK_BYTES("a")) == NULL);
    HK_CHECK(hk_map_find(&map, hk_bytes(NULL, 0)) == NULL);
    HK_CHECK_EQUAL_UINT(0, visits_of(&map));
    HK_CHECK_EQUAL_UINT(0, hk_test_requests());
    hk_map_release(&map);
}

HK_TEST(keys_are_compared_whole)
{
    static const hk_bytes_t keys[] = {{"", 0},    {"\0", 1}, {"\0\0", 2}, {"a", 1},
                                      {"a\0", 2}, {"A", 1},  {"a\0b", 3}, {"a\0c", 3}};
    enum { COUNT = sizeof(keys) / sizeof(*keys) };
    hk_map_node_t nodes[COUNT];
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK(hk_map_find(&map, keys[i]) == NULL);
        HK_CHECK_OK(hk_map_add(&map, &nodes[i], keys[i]));
    }
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK(hk_map_find(&map, keys[i]) == &nodes[i]);
        HK_CHECK_EQUAL_UINT(hk_hash(secret, keys[i]), hk_map_hash(&map, keys[i]));
    }
    hk_map_release(&map);
}

HK_TEST(keys_with_the_same_hash_are_told_apart)
{
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    thing_t things[3];
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK_OK(hk_map_add(&map, &things[i].node, name(&things[i], i)));
    }
    /* As if they collided: no two short keys that do are known. */
    uint64_t hash = hk_map_hash(&map, things[0].node.key);
    memset(map.buckets, 0, map.bucket_count * sizeof(*map.buckets));
    for (size_t i = 0; i < 3; i++) {
        hk_map_node_t **bucket = &map.buckets[hash & (map.bucket_count - 1)];
        things[i].node.hash = hash;
        things[i].node.next = *bucket;
        *bucket = &things[i].node;
    }
    HK_CHECK(hk_map_find(&map, things[0].node.key) == &things[0].node);
    hk_map_remove(&map, &things[1].node);
    HK_CHECK(hk_map_find(&map, things[0].node.key) == &things[0].node);
    hk_map_remove(&map, &things[0].node);
    HK_CHECK(hk_map_find(&map, HK_BYTES("thing/0")) == NULL);
    HK_CHECK_EQUAL_UINT(1, visits_of(&map));
    hk_map_release(&map);
}

HK_TEST(keys_that_look_alike_do_not_crowd_together)
{
    enum { COUNT = 4096 };
    static thing_t things[COUNT];
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK_OK(hk_map_add(&map, &things[i].node, name(&things[i], i * 65536)));
    }
    HK_CHECK_EQUAL_UINT(COUNT, map.bucket_count);
    for (size_t i = 0; i < map.bucket_count; i++) {
        size_t length = 0;
        for (const hk_map_node_t *node = map.buckets[i]; node != NULL; node = node->next) {
            length++;
        }
        HK_CHECK(length < 16);
    }
    hk_map_release(&map);
}

HK_TEST(two_maps_hash_with_secrets_of_their_own)
{
    static const uint64_t other_secret[2] = {1, 2};
    hk_map_t one, other;
    hk_map_init(&one, hk_test_alloc(), secret);
    hk_map_init(&other, hk_test_alloc(), other_secret);
    HK_CHECK(hk_map_hash(&one, HK_BYTES("a")) != hk_map_hash(&other, HK_BYTES("a")));
}

HK_TEST(the_table_doubles_and_everything_stays_there)
{
    enum { COUNT = 1000 };
    static thing_t things[COUNT];
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK_OK(hk_map_add(&map, &things[i].node, name(&things[i], i)));
        HK_CHECK_EQUAL_UINT(i + 1, map.count);
    }
    HK_CHECK_EQUAL_UINT(1024, map.bucket_count);
    HK_CHECK_EQUAL_UINT(8, hk_test_requests());
    HK_CHECK_EQUAL_UINT(COUNT, visits_of(&map));
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK(hk_map_find(&map, things[i].node.key) == &things[i].node);
        HK_CHECK_EQUAL_INT(1, things[i].visits);
    }
    hk_map_release(&map);
    HK_CHECK_EQUAL_UINT(0, map.count);
    HK_CHECK(hk_map_find(&map, things[0].node.key) == NULL);
    HK_CHECK_OK(hk_map_add(&map, &things[0].node, name(&things[0], 0)));
    HK_CHECK_EQUAL_UINT(1, visits_of(&map));
    hk_map_release(&map);
}

typedef struct removal {
    hk_map_t *map;
    size_t visits;
} removal_t;

static void remove_even(void *context, hk_map_node_t *node)
{
    removal_t *removal = context;
    if (removal->visits++ % 2 == 0) {
        hk_map_remove(removal->map, node);
        memset(node, 0xA5, sizeof(*node));
    }
}

HK_TEST(a_visit_may_remove_what_it_visits)
{
    enum { COUNT = 100 };
    static thing_t things[COUNT];
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK_OK(hk_map_add(&map, &things[i].node, name(&things[i], i)));
    }
    removal_t removal = {&map, 0};
    hk_map_each(&map, remove_even, &removal);
    HK_CHECK_EQUAL_UINT(COUNT, removal.visits);
    HK_CHECK_EQUAL_UINT(COUNT / 2, map.count);
    HK_CHECK_EQUAL_UINT(COUNT / 2, visits_of(&map));
    hk_map_release(&map);
}

HK_TEST(random_operations_do_as_an_array_does)
{
    enum { COUNT = 300 };
    static thing_t things[COUNT];
    hk_bytes_t keys[COUNT];
    size_t present = 0;
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    for (size_t i = 0; i < COUNT; i++) {
        keys[i] = name(&things[i], i);
    }
    for (int i = 0; i < 30000; i++) {
        size_t which = hk_test_below(COUNT);
        thing_t *thing = &things[which];
        HK_CHECK(hk_map_find(&map, keys[which]) == (thing->present ? &thing->node : NULL));
        if (thing->present) {
            hk_map_remove(&map, &thing->node);
            present--;
        } else {
            HK_CHECK_OK(hk_map_add(&map, &thing->node, keys[which]));
            present++;
        }
        thing->present = !thing->present;
        HK_CHECK_EQUAL_UINT(present, map.count);
    }
    HK_CHECK_EQUAL_UINT(present, visits_of(&map));
    hk_map_release(&map);
}

HK_TEST(without_memory_for_a_larger_table_the_map_goes_on_with_the_one_it_has)
{
    enum { COUNT = 50 };
    thing_t things[COUNT];
    HK_EACH_FAILING_ALLOCATION {
        hk_map_t map;
        hk_map_init(&map, hk_test_alloc(), secret);
        size_t added = 0;
        for (size_t i = 0; i < COUNT; i++) {
            hk_status_t status = hk_map_add(&map, &things[i].node, name(&things[i], i));
            HK_CHECK_STATUS(map.bucket_count > 0 ? HK_OK : HK_NO_MEMORY, status);
            things[i].present = status == HK_OK;
            added += status == HK_OK;
            HK_CHECK_EQUAL_UINT(added, map.count);
        }
        for (size_t i = 0; i < COUNT; i++) {
            HK_CHECK(hk_map_find(&map, things[i].present ? things[i].node.key : HK_BYTES("?")) ==
                     (things[i].present ? &things[i].node : NULL));
        }
        HK_CHECK_EQUAL_UINT(added, visits_of(&map));
        hk_map_release(&map);
    }
}

HK_TEST(finding_and_removing_take_no_memory)
{
    thing_t thing;
    hk_map_t map;
    hk_map_init(&map, hk_test_alloc(), secret);
    HK_CHECK_OK(hk_map_add(&map, &thing.node, name(&thing, 1)));
    size_t requests = hk_test_requests();
    for (int i = 0; i < 100; i++) {
        hk_map_remove(&map, hk_map_find(&map, HK_BYTES("thing/1")));
        HK_CHECK(hk_map_find(&map, HK_BYTES("thing/1")) == NULL);
        HK_CHECK_OK(hk_map_add(&map, &thing.node, name(&thing, 1)));
    }
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    hk_map_release(&map);
}
