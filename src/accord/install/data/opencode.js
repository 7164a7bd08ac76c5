// accord in OpenCode, whose hooks are functions of a plugin. Each asks `accord hook`, and puts what that says before the
// model. Whatever goes wrong there, OpenCode works on as if this were not installed.

import { spawn } from "node:child_process"

const COMMAND = ["accord"] // `accord install opencode` writes here where it is
const DEADLINE_MS = 5000
const MOST_CHARACTERS = 1 << 20 // of an answer

// What accord says, as JSON on one line, or "". `hold` is given what can be ended.
function ask(event, given, timeout = DEADLINE_MS, hold = () => {}) {
  return new Promise((resolve) => {
    let said = ""
    const [program, ...words] = COMMAND
    const child = spawn(program, [...words, "hook", event, "--brain", "opencode"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout,
    })
    hold(child)
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(said))
    child.stdout.on("data", (data) => {
      if (said.length < MOST_CHARACTERS) said += data
    })
    child.stdin.on("error", () => {}) // it may end before it has read all
    child.stdin.end(JSON.stringify(given))
  })
}

function read(answer) {
  try {
    return JSON.parse(answer).text ?? ""
  } catch {
    return ""
  }
}

export const Accord = async ({ client, directory }) => {
  const sessions = new Map() // of this process, by id

  // What is known of a session; nothing of one that another has started, as for a part of its work.
  async function find(id) {
    if (!sessions.has(id)) sessions.set(id, look(id))
    return sessions.get(id)
  }

  async function look(id) {
    try {
      const { data } = await client.session.get({ path: { id } })
      if (!data || data.parentID) return null
    } catch {
      return null
    }
    // The newest answer of the model, in which one it was shown text, and what was asked of accord last.
    return { isNew: true, answer: "", shownIn: "", last: Promise.resolve("") }
  }

  // What accord has to say in the course of an answer of the model. One at a time: tools of one answer end together, and
  // what is shown with one of them proves nothing about the next.
  function text(event, id, session, more) {
    const answer = session.answer
    const next = session.last.then(async () => {
      const given = { session_id: id, cwd: directory, answered: answer !== session.shownIn, ...more }
      const said = read(await ask(event, given))
      if (said) session.shownIn = answer
      return said
    })
    session.last = next
    return next
  }

  // While a session waits for its user, accord waits for mail: it ends with the words of a prompt once there is some.
  async function wait(id, session) {
    rest(session)
    const given = { session_id: id, cwd: directory }
    const said = read(await ask("wait", given, 0, (child) => (session.waiting = child)))
    const { agent, model } = session
    const parts = [{ type: "text", text: said }]
    if (said) await client.session.promptAsync({ path: { id }, body: { agent, model, parts } }).catch(() => {})
  }

  function rest(session) {
    session.waiting?.kill()
  }

  return {
    event: async ({ event }) => {
      const part = event.properties?.part
      if (event.type === "message.part.updated" && part?.type === "step-start") {
        const session = await sessions.get(part.sessionID)
        if (session) session.answer = part.messageID
      }
      if (event.type === "session.idle") {
        const session = await sessions.get(event.properties.sessionID)
        if (session) wait(event.properties.sessionID, session)
      }
    },

    // A prompt: a person's, or one that we send below.
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const session = await find(sessionID)
      const first = parts.find((part) => part.type === "text")
      if (!session || !first || first.text.startsWith("<accord-mail ")) return
      rest(session)
      session.agent = message.agent
      session.model = message.model
      const said = session.isNew ? [await text("start", sessionID, session)] : []
      session.isNew = false
      said.push(await text("prompt", sessionID, session, { prompt: first.text }))
      const shown = said.filter(Boolean).join("\n")
      if (shown) parts.push({ ...first, id: first.id + "accord", text: shown, synthetic: true })
    },

    "tool.execute.after": async ({ sessionID }, result) => {
      const session = await sessions.get(sessionID)
      if (!session || typeof result?.output !== "string") return
      const shown = await text("step", sessionID, session)
      if (shown) result.output += "\n\n" + shown
    },

    // The model has said something, and may be at its end: a prompt that is there by then makes it go on.
    "experimental.text.complete": async ({ sessionID, messageID }) => {
      const session = await sessions.get(sessionID)
      if (!session) return
      session.answer = messageID
      const shown = await text("stop", sessionID, session)
      if (!shown) return
      const { agent, model } = session // without these, it would go on as the one that is set by default
      const parts = [{ type: "text", text: shown, synthetic: true }]
      await client.session.promptAsync({ path: { id: sessionID }, body: { noReply: true, agent, model, parts } }).catch(() => {})
    },

    dispose: async () => {
      const end = async ([id, session]) => {
        if (!(await session)) return
        rest(await session)
        await ask("end", { session_id: id, cwd: directory })
      }
      await Promise.all([...sessions].map(end))
    },
  }
}
