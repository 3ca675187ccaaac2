-- Write a remote worker's access token down, unless another one has changed it meanwhile.
--
-- KEYS 1 workers  hash  access token -> its facts (JSON)
-- ARGV 1 access token  2 what stood there, '' for nothing  3 what is to stand there
-- Reply {'written'}  or {'changed'}

if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return {'changed'} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return {'written'}
