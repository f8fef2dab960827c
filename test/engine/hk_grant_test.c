#include "hk_hub_fixture.h"

static hk_topic_t *topic(const char *value)
{
    hk_topic_t *made;
    hk_url_t url = {.origin = HK_BYTES("https://hub.example.com")};
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), hk_test_text(value), &url, false, &made));
    return made;
}

static void count_gone(void *context, uint64_t tag)
{
    *(uint64_t *)context += tag;
}

HK_TEST(a_grant_copies_what_it_was_made_of)
{
    char subject[] = "alice", head[] = "/head/";
    hk_matcher_t *matcher;
    HK_CHECK_OK(fixture_matcher(HK_BYTES("/a"), &matcher));
    hk_grant_subscription_t subscription = {matcher, true, fixture_announcement()};
    subscription.announcement.topic_head = hk_bytes(head, 6);
    hk_grant_options_t options = {.subscriptions = &subscription,
                                  .subscription_count = 1,
                                  .subject = hk_bytes(subject, 5),
                                  .expires_at = 17,
                                  .tag = 4};
    hk_grant_t *grant;
    HK_CHECK_OK(hk_grant_new(hk_test_alloc(), &options, &grant));
    memset(subject, 'x', 5);
    memset(head, 'x', 6);
    hk_matcher_release(matcher);
    HK_CHECK_EQUAL_UINT(1, grant->subscription_count);
    HK_CHECK_BYTES("/a", grant->subscriptions[0].matcher->pattern);
    HK_CHECK(grant->subscriptions[0].announced);
    HK_CHECK_BYTES("/head/", grant->subscriptions[0].announcement.topic_head);
    HK_CHECK_BYTES("}", grant->subscriptions[0].announcement.parts[3]);
    HK_CHECK_BYTES("mercure", grant->subscriptions[0].announcement.type);
    HK_CHECK_BYTES("alice", grant->subject);
    HK_CHECK_EQUAL_INT(17, grant->expires_at);
    HK_CHECK(grant->bytes > sizeof(*grant));
    hk_grant_release(grant);
}

HK_TEST(who_made_a_grant_is_told_when_nobody_holds_it)
{
    uint64_t gone = 0;
    hk_grant_options_t options = {.tag = 7, .gone = count_gone, .context = &gone};
    hk_grant_t *grant;
    HK_CHECK_OK(hk_grant_new(hk_test_alloc(), &options, &grant));
    HK_CHECK(hk_grant_retain(grant) == grant);
    hk_grant_release(grant);
    HK_CHECK_EQUAL_UINT(0, gone);
    hk_grant_release(grant);
    HK_CHECK_EQUAL_UINT(7, gone);
    hk_grant_release(NULL);
}

HK_TEST(one_granted_topic_suffices_to_read_and_all_are_needed_to_publish)
{
    static const struct {
        const char *granted;
        bool reads, publishes; /* both "/a" and "/b/1" */
    } rows[] = {{"", false, false},      {"/a", true, false}, {"/b/*", true, false},   {"/c /b/2", false, false},
                {"/b/* /a", true, true}, {"*", true, true},   {"/b/1 /a", true, true}, {"/b/1", true, false}};
    hk_topic_t *topics[] = {topic("/a"), topic("/b/1")};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        hk_test_note("%s", rows[i].granted);
        hk_matcher_t *matchers[MOST_WORDS];
        size_t count = 0;
        HK_CHECK_OK(fixture_matchers(rows[i].granted, matchers, &count));
        hk_grant_options_t options = {
            .reads = matchers, .read_count = count, .publishes = matchers, .publish_count = count};
        hk_grant_t *grant;
        hk_program_space_t space;
        HK_CHECK_OK(hk_grant_new(hk_test_alloc(), &options, &grant));
        hk_program_space_init(&space, hk_test_alloc());
        HK_CHECK_OK(hk_program_space_reserve(&space, grant->instructions));
        HK_CHECK_EQUAL_INT(rows[i].reads, hk_grant_reads(grant, &space, topics, 2));
        HK_CHECK_EQUAL_INT(rows[i].publishes, hk_grant_publishes(grant, &space, topics, 2));
        hk_record_t record = {.topics = topics, .topic_count = 2};
        HK_CHECK(hk_grant_admits(grant, &space, &record));
        record.is_private = true;
        HK_CHECK_EQUAL_INT(rows[i].reads, hk_grant_admits(grant, &space, &record));
        hk_program_space_release(&space);
        hk_grant_release(grant);
        fixture_release(matchers, count);
    }
    hk_topic_release(topics[0]);
    hk_topic_release(topics[1]);
}

HK_TEST(a_grant_with_too_many_subscriptions_is_refused)
{
    hk_grant_options_t options = {.subscription_count = 65536};
    hk_grant_t *grant;
    HK_CHECK_STATUS(HK_TOO_LARGE, hk_grant_new(hk_test_alloc(), &options, &grant));
}

HK_TEST(a_grant_that_could_not_be_made_holds_nothing)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_grant_t *grant;
        wish_t wish = {.matches = "/a /b/*", .reads = "/c", .subject = "bob", .announced = true};
        hk_status_t status = fixture_grant(&wish, &grant);
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        if (status == HK_OK) {
            hk_grant_release(grant);
        }
    }
}
