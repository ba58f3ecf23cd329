// The current engine behind HTTP, as far as sources/clickhouse uses it: libchdb has no server and one user. A user here is a role of the engine, whose grants the engine checks, and a set of settings, which
// go with each of the user's statements as SETTINGS, so that what the engine refuses to a profile it refuses here. Statements of one request run beside those of others; rows of an INSERT go through a file.
import http from 'node:http'
import fs from 'node:fs'
import path from 'node:path'
import { createRequire } from 'node:module'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'

const config = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))
const { Session } = createRequire(path.join(config.modules, 'any.js'))('chdb')
const data = path.join(config.dir, 'data')
const idle = new Map() // by the user: connections to one engine, in that user's role
function take(user) {
  const known = idle.get(user)?.pop()
  if (known) return known
  const session = new Session(data, { connectionArgs: ['--config-file=' + path.join(config.dir, 'config.xml')] })
  session.query('SET ROLE `' + user + '`')
  return session
}
function give(user, session) {
  if (!idle.has(user)) idle.set(user, [])
  idle.get(user).push(session)
}
give(config.owner, take(config.owner))
const running = new Map() // by the query_id of the request
let files = 0

const quoted = (v) => "'" + String(v).replaceAll('\\', '\\\\').replaceAll("'", "\\'") + "'"

// withSettings says a user's settings, and the request's, with a statement, where its kind has any.
function withSettings(text, settings) {
  const list = Object.entries(settings).filter(([k]) => !serverOnly.has(k)).map(([k, v]) => k + '=' + quoted(v)).join(', ')
  if (!list) return text
  if (/^\s*(SELECT|WITH|INSERT\s+INTO[\s\S]*\bSELECT\b)/i.test(text)) return text + '\nSETTINGS ' + list
  return text.replace(/^(\s*INSERT\s+INTO[\s\S]*?)(\s+FROM INFILE\b)/i, '$1$2') // an INSERT of rows has none
}
const serverOnly = new Set(['cancel_http_readonly_queries_on_client_close', 'log_queries'])
const known = new Set(['query', 'query_id', 'user', 'password', 'database', 'default_format', 'wait_end_of_query', 'buffer_size', 'compress', 'session_id'])

async function answer(request, reply) {
  const url = new URL(request.url, 'http://loopback')
  if (url.pathname === '/ping' || (request.method === 'GET' && !url.searchParams.has('query'))) return reply.end('Ok.\n')
  const user = request.headers['x-clickhouse-user'] ?? 'default'
  const profile = config.users[user]
  if (!profile || request.headers['x-clickhouse-key'] !== config.password) {
    reply.statusCode = 403
    return reply.end('Code: 516. DB::Exception: ' + user + ': Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)\n')
  }
  const settings = { ...profile }
  for (const [name, value] of url.searchParams) {
    if (known.has(name)) continue
    if (profile.readonly === '1') throw new Error(`Code: 164. DB::Exception: Cannot modify '${name}' setting in readonly mode. (READONLY)`)
    settings[name] = value
  }
  let text = url.searchParams.get('query') ?? ''
  let file
  try {
    if (/^\s*INSERT\b[\s\S]*\bFORMAT\s+\w+\s*$/i.test(text)) {
      if (profile.readonly === '1') throw new Error('Code: 164. DB::Exception: ' + user + ': Cannot execute query in readonly mode. (READONLY)')
      file = path.join(config.dir, 'rows-' + ++files)
      await pipeline(request, fs.createWriteStream(file))
      text = text.replace(/\bFORMAT\s+(\w+)\s*$/i, `FROM INFILE ${quoted(file)} FORMAT $1`)
    } else {
      const pieces = []
      for await (const piece of request) pieces.push(piece)
      text += Buffer.concat(pieces).toString()
    }
    if (profile.readonly === '1' && !/^\s*(SELECT|WITH|SHOW|DESCRIBE|EXISTS|KILL)\b/i.test(text)) throw new Error('Code: 164. DB::Exception: ' + user + ': Cannot execute query in readonly mode. (READONLY)')
    const kill = /^\s*KILL\s+QUERY\s+WHERE\s+query_id\s*=\s*'([^']*)'/i.exec(text)
    if (kill) {
      running.get(kill[1])?.()
      return reply.end(running.has(kill[1]) ? 'waiting\n' : '')
    }
    await run(user, text, settings, url.searchParams.get('query_id'), url.searchParams.has('wait_end_of_query'), reply)
  } finally {
    if (file) fs.rmSync(file, { force: true })
  }
}

// run runs a statement; where it makes rows they are sent as they come. Who goes away stops it.
async function run(user, text, settings, id, whole, reply) {
  const format = 'TabSeparated'
  const session = take(user)
  const mark = `/* ${process.pid}-${++files} */ `
  const ended = { done: false, killed: false }
  const kill = () => {
    if (ended.done || ended.killed) return
    ended.killed = true
    const other = take(config.owner)
    const again = () => { // until it has: a statement that waits for a thread is not listed yet
      if (ended.done) return give(config.owner, other)
      other.queryAsync(`KILL QUERY WHERE query LIKE '${mark}%' ASYNC`).catch(() => {}).finally(() => setTimeout(again, 100))
    }
    again()
  }
  if (id) running.set(id, kill)
  reply.on('close', kill)
  let failed = false
  try {
    text = mark + withSettings(text, settings)
    if (!whole && /^\S+ \S+ \S+ \s*(SELECT|WITH)\b/i.test(text)) {
      for await (const chunk of session.queryStream(text, { format })) {
        if (ended.killed) throw new Error('Code: 394. DB::Exception: Query was cancelled. (QUERY_WAS_CANCELLED)')
        if (!reply.write(chunk.raw())) await Promise.race([once(reply, 'drain'), once(reply, 'close')])
      }
      reply.end()
    } else {
      const result = await session.queryAsync(text, { format })
      reply.end(Buffer.from(result.bytes()))
    }
  } catch (e) {
    failed = true
    throw e
  } finally {
    ended.done = true
    if (id) running.delete(id)
    // The library releases a stream that has failed when its garbage is collected, and the engine lists the statement until then; its connection releases it at once.
    if (failed) session.close()
    else give(user, session)
  }
}

const server = http.createServer((request, reply) => {
  answer(request, reply).catch((e) => {
    if (reply.headersSent) return reply.destroy() // as a server that dies in the middle; it must not look like an end
    const code = /Code: (\d+)/.exec(e.message)?.[1] ?? '0'
    reply.statusCode = 500
    reply.setHeader('X-ClickHouse-Exception-Code', code)
    reply.end(e.message + '\n')
  })
})
server.keepAliveTimeout = 0 // else a connection that has been idle is closed while a statement is on its way
server.listen(config.port, '127.0.0.1')
