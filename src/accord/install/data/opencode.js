// Tells accord what happens in a session, and puts before the model what accord answers. Whatever goes wrong with accord,
// OpenCode works on as if this were not here.

import { spawn } from "node:child_process"

const COMMAND = ["accord"] // `accord install opencode` writes here where it is
const TIMEOUT_MS = 10_000
const STOP_MS = 60_000 // it may wait for messages

// What accord says to one event; {} when it says nothing, or takes too long.
function ask(event, input, timeout = TIMEOUT_MS) {
  return new Promise((resolve) => {
    let said = ""
    let timer
    const end = (answer) => {
      clearTimeout(timer)
      resolve(answer ?? {})
    }
    try {
      const [program, ...words] = COMMAND
      const child = spawn(program, [...words, "hook", event, "--brain", "opencode"], {
        cwd: input.cwd,
        stdio: ["pipe", "pipe", "ignore"],
      })
      timer = setTimeout(() => {
        child.kill()
        end()
      }, timeout)
      child.on("error", () => end())
      child.stdin.on("error", () => {})
      child.stdout.on("data", (data) => (said += data))
      child.on("close", () => {
        try {
          end(JSON.parse(said))
        } catch {
          end()
        }
      })
      child.stdin.end(JSON.stringify(input))
    } catch {
      end()
    }
  })
}

const context = (answer) => answer.hookSpecificOutput?.additionalContext ?? ""

export const Accord = async ({ client, directory }) => {
  const started = new Map() // sessions, each with the promise of what accord said to its start, as long as nobody has read it
  const below = new Set() // sessions of agents that another agent started: accord knows only the one that its user talks to
  const stopped = new Set() // sessions that go on because accord had something for them

  const input = (event, session, more = {}) => ({ session_id: session, cwd: directory, hook_event_name: event, ...more })

  const start = (session, source) => {
    if (!started.has(session)) started.set(session, ask("start", input("session.created", session, { source })).then(context))
    return started.get(session)
  }

  const end = async (session, reason) => {
    if (started.delete(session)) await ask("end", input("session.deleted", session, { reason }))
  }

  const stop = async (session) => {
    const active = stopped.delete(session)
    const answer = await ask("stop", input("session.idle", session, { stop_hook_active: active }), STOP_MS)
    if (answer.decision !== "block" || !answer.reason || !started.has(session)) return
    stopped.add(session)
    // In the background: the turn that this begins ends with an event of its own.
    await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text: answer.reason, synthetic: true }] } })
  }

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created") {
        if (event.properties.info?.parentID) below.add(session)
        else start(session, "startup")
      } else if (event.type === "session.idle" && started.has(session)) {
        stop(session).catch(() => {})
      } else if (event.type === "session.deleted") {
        await end(session, "deleted")
      }
    },

    "chat.message": async ({ sessionID }, output) => {
      if (below.has(sessionID)) return
      const first = await start(sessionID, "resume")
      if (first) started.set(sessionID, Promise.resolve(""))
      const text = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      const said = context(await ask("prompt", input("chat.message", sessionID, { prompt: text.join("\n") })))
      const last = output.parts.at(-1)?.id ?? `prt_${output.message.id.slice(4)}`
      for (const [number, added] of [first, said].entries()) {
        if (!added) continue
        const id = `${last}accord${number}` // parts stand in the order of their ids
        output.parts.push({ id, sessionID, messageID: output.message.id, type: "text", text: added, synthetic: true })
      }
    },

    "tool.execute.after": async ({ tool, sessionID, callID }, output) => {
      if (!started.has(sessionID)) return
      const said = context(await ask("step", input("tool.execute.after", sessionID, { tool_name: tool, tool_use_id: callID })))
      if (!said) return
      // A tool of an MCP server answers with a list, others with a text.
      if (Array.isArray(output.content)) output.content.push({ type: "text", text: said })
      else output.output = `${output.output ?? ""}\n\n${said}`
    },

    dispose: async () => {
      await Promise.all([...started.keys()].map((session) => end(session, "exit")))
    },
  }
}
