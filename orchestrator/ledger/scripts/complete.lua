-- Journal a finished game, keep its record, free the slot if it is still the attempt's.
--
-- KEYS 1 slot      hash    the lease
--      2 offers    hash    season -> game
--      3 orders    hash    season -> order
--      4 results   hash    game -> '<seq> <attempt>'
--      5 attempts  hash    attempt -> '<token> <worker>'
--      6 latest    hash    game -> newest attempt
--      7 epoch     string  the present epoch
--      8 journal   stream  the season's
--      9 record    string  the record as it came
--     10 checked   hash    journal -> server in which serve has compared it
-- ARGV 1 season  2 game  3 attempt  4 token  5 game_finished (JSON)  6 record
--      7 schema version
-- Reply {'recorded', seq}  now, or earlier by the same attempt
--       {'refused', why, detail}  why: result, epoch, newer, unknown (requests.refusal)
--       {'unchecked'}  serve has not compared the journal since Redis' start: try again

local season, game, attempt, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not is_checked(KEYS[10], season) then return {'unchecked'} end
local result = redis.call('HGET', KEYS[4], game)
if result then
  local seq, by = string.match(result, '^(%d+) (.*)$')
  if by == attempt then return {'recorded', tonumber(seq)} end
  return {'refused', 'result', by}
end
local epoch = current_epoch(KEYS[7])
if epoch_of(token) ~= epoch then return {'refused', 'epoch', epoch} end
local given, worker = string.match(redis.call('HGET', KEYS[5], attempt) or '', '^(%S+) (.*)$')
if given ~= token then return {'refused', 'unknown', attempt} end
local newest = redis.call('HGET', KEYS[6], game)
if not newest then return {'refused', 'unknown', attempt} end
-- No newer token for the game means: the slot is still ours, or nobody's for this game.
if newest ~= attempt then return {'refused', 'newer', newest} end

wake(KEYS[10], season)
local seq = record_facts(KEYS[8], {{'game_finished', ARGV[5]}}, ARGV[7], worker, token, '')
redis.call('HSET', KEYS[4], game, text(seq) .. ' ' .. attempt)
redis.call('SET', KEYS[9], ARGV[6])
withdraw_game(KEYS[2], KEYS[3], season, game)
if is_holder(KEYS[1], attempt, token) then redis.call('DEL', KEYS[1]) end
return {'recorded', seq}
