-- Note how a remote worker stands with a match's checks, while the match is open: what is noted
-- later would never be forgotten.
--
-- KEYS 1 tests   hash  open matches
--      2 checks  hash  '<match> <worker>' -> what it owes
-- ARGV 1 match  2 field of the worker  3 what it owes, '' for one that was never asked
-- Reply {'noted'}  or {'closed'}

if ARGV[3] == '' then
  redis.call('HDEL', KEYS[2], ARGV[2])
  return {'noted'}
end
if not redis.call('HGET', KEYS[1], ARGV[1]) then return {'closed'} end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
return {'noted'}
