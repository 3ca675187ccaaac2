-- Say how far a test match's journal is in its mirror: it may be dealt on.
--
-- KEYS 1 tests     hash    match -> what claims look at (JSON)
--      2 queue     zset    matches with games to deal
--      3 served    hash    match -> games dealt
--      4 mirrored  hash    match -> last entry in its mirror
-- ARGV 1 match  2 last entry that is in the mirror
-- Reply {'mirrored'}

redis.call('HSET', KEYS[4], ARGV[1], ARGV[2])
queue_match(KEYS[2], KEYS[1], KEYS[3], ARGV[1])
return {'mirrored'}
