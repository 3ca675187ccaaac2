-- End an attempt from the farm's side: overdue, and still marked with the same chain.
--
-- KEYS 1 slot     hash    the lease
--      2 ended    hash    attempt, token, season, seq of the hall's last given-up attempt
--      3 journal  stream  the season's
--      4 offers   hash    season -> game
--      5 orders   hash    season -> order
--      6 checked  hash    journal -> server in which serve has compared it
-- ARGV 1 season  2 attempt  3 token  4 chain  5 attempt_ended (JSON)  6 by
--      7 schema version  8 '1' for a season that serve has suspended
-- Reply {'recorded', seq}  now, or earlier for the same attempt
--       {'freed'}  a suspended season's: the hall is free, its journal is as it was
--       {'alive'}  not overdue, not marked, or not the lease that was meant
--       {'unchecked'}  serve has not compared the journal since Redis' start: try again

local season, attempt, token = ARGV[1], ARGV[2], ARGV[3]
local unchecked = not is_checked(KEYS[6], season)
if unchecked and ARGV[8] ~= '1' then return {'unchecked'} end
local ended = redis.call('HMGET', KEYS[2], 'attempt', 'token', 'seq')
if ended[1] == attempt and ended[2] == token then return {'recorded', tonumber(ended[3])} end
local slot = redis.call('HMGET', KEYS[1], 'season', 'deadline', 'suspect', 'game')
if not is_holder(KEYS[1], attempt, token) or slot[1] ~= season or slot[3] ~= ARGV[4]
    or now_ms() <= tonumber(slot[2]) then
  return {'alive'}
end
if unchecked then
  redis.call('DEL', KEYS[1])
  withdraw_game(KEYS[4], KEYS[5], season, slot[4])
  return {'freed'}
end
wake(KEYS[6], season)
local seq = record_facts(KEYS[3], {{'attempt_ended', ARGV[5]}}, ARGV[7], ARGV[6], token, '')
redis.call('HSET', KEYS[2], 'attempt', attempt, 'token', token, 'season', season,
  'seq', text(seq))
redis.call('DEL', KEYS[1])
withdraw_game(KEYS[4], KEYS[5], season, slot[4])
return {'recorded', seq}
