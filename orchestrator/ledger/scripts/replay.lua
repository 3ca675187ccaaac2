-- Journal that results of a test match are set aside, and deal their games again.
--
-- KEYS 1 tests    hash    open matches
--      2 queue    zset    matches with games to deal
--      3 repeats  zset    '<match> <game>' to deal again
--      4 served   hash    match -> games dealt
--      5 last     hash    match -> last entry of its journal
--      6 journal  stream  the match's
-- ARGV 1 match  2 games, with blanks between  3 kind  4 data (JSON)  5 schema version  6 by
-- Reply {'replayed'}
--       {'not-ready'}  the match is not open

if not redis.call('HGET', KEYS[1], ARGV[1]) then return {'not-ready'} end
local at = record_facts(KEYS[6], {{ARGV[3], ARGV[4]}}, ARGV[5], ARGV[6], '', '')
redis.call('HSET', KEYS[5], ARGV[1], text(at))
deal_again(KEYS[3], KEYS[2], KEYS[1], KEYS[4], ARGV[1], ARGV[2])
return {'replayed'}
