-- Make a game the hall's ready game of its season.
--
-- KEYS 1 journal  stream  the season's journal
--      2 results  hash    the season's results
--      3 offers   hash    season -> game
--      4 orders   hash    season -> order
--      5 halls    set     known halls
-- ARGV 1 hall  2 season  3 game  4 order  5 expected (last sequence number seen)
-- Reply {'offered'}      it is the ready game (now, or already with the same order)
--       {'not-ready'}    it has its result, or the season was never launched
--       {'stale', last}  nothing done

local last = last_entry(KEYS[1])
if last == 0 or redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 then return {'not-ready'} end
if redis.call('HGET', KEYS[3], ARGV[2]) == ARGV[3]
    and redis.call('HGET', KEYS[4], ARGV[2]) == ARGV[4] then
  return {'offered'}
end
if last ~= tonumber(ARGV[5]) then return {'stale', last} end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[4], ARGV[2], ARGV[4])
redis.call('SADD', KEYS[5], ARGV[1])
return {'offered'}
