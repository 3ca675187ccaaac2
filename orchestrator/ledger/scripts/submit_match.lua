-- Write a submitted test match down, unless somebody has changed it meanwhile.
--
-- KEYS 1 submitted  hash  match -> who submitted it, and who agrees (JSON)
--      2 orders     hash  match -> what is played (JSON)
-- ARGV 1 match  2 what stood there, '' for nothing  3 what is to stand there
--      4 its order, '' leaves the one that is there
-- Reply {'written'}  or {'changed'}

if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return {'changed'} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
if ARGV[4] ~= '' then redis.call('HSET', KEYS[2], ARGV[1], ARGV[4]) end
return {'written'}
