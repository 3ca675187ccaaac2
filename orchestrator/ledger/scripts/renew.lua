-- Extend the lease by its own ttl, carry progress, bring back the operator's wishes.
--
-- KEYS 1 slot    hash    the lease
--      2 epoch   string  the present epoch
--      3 drains  hash    worker -> reason
-- ARGV 1 attempt  2 token  3 ply  4 time of the last move (ms)
-- Reply {'renewed', abort, drain}  each '' where there is no wish
--       {'fenced'}

if not may_write(KEYS[1], KEYS[2], ARGV[1], ARGV[2]) then return {'fenced'} end
local slot = redis.call('HMGET', KEYS[1], 'ttl', 'worker', 'abort')
redis.call('HSET', KEYS[1], 'deadline', text(now_ms() + tonumber(slot[1])),
  'ply', ARGV[3], 'last_move', ARGV[4], 'suspect', '')
return {'renewed', slot[3], redis.call('HGET', KEYS[3], slot[2]) or ''}
