-- End an attempt from its own side; its game is offered again only after a verdict.
--
-- KEYS 1 slot     hash    the lease
--      2 ended    hash    attempt, token, season, seq of the hall's last given-up attempt
--      3 epoch    string  the present epoch
--      4 journal  stream  the season's
--      5 offers   hash    season -> game
--      6 orders   hash    season -> order
--      7 checked  hash    journal -> server in which serve has compared it
-- ARGV 1 season  2 attempt  3 token  4 attempt_ended (JSON)  5 schema version
-- Reply {'recorded', seq}  now, or earlier by the same attempt
--       {'fenced'}
--       {'unchecked'}  serve has not compared the journal since Redis' start: try again

local season, attempt, token = ARGV[1], ARGV[2], ARGV[3]
if not is_checked(KEYS[7], season) then return {'unchecked'} end
local ended = redis.call('HMGET', KEYS[2], 'attempt', 'token', 'seq')
if ended[1] == attempt and ended[2] == token then return {'recorded', tonumber(ended[3])} end
if not may_write(KEYS[1], KEYS[3], attempt, token) then return {'fenced'} end
local slot = redis.call('HMGET', KEYS[1], 'season', 'worker', 'game')
if slot[1] ~= season then return {'fenced'} end
wake(KEYS[7], season)
local seq = record_facts(KEYS[4], {{'attempt_ended', ARGV[4]}}, ARGV[5], slot[2], token, '')
redis.call('HSET', KEYS[2], 'attempt', attempt, 'token', token, 'season', season,
  'seq', text(seq))
redis.call('DEL', KEYS[1])
withdraw_game(KEYS[5], KEYS[6], season, slot[3])
return {'recorded', seq}
