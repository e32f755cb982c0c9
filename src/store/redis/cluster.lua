-- 1 on a node of a cluster, 0 on a single server. KEYS[1] only leads the call to some node. Where the user may
-- not ask, it counts as a cluster, which is right on both.
local info = redis.pcall('INFO', 'cluster')
return (info.err or info:find('cluster_enabled:1', 1, true)) and 1 or 0
