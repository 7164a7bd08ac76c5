// accord in OpenCode, whose hooks are functions of a plugin. Each asks `accord hook`, and puts what that says before the
// model. Whatever goes wrong there, OpenCode works on as if this were not installed.

import { spawn } from "node:child_process"

const COMMAND = ["accord"] // `accord install opencode` writes here where it is
const DEADLINE_MS = 5000
const MOST_CHARACTERS = 1 << 20 // of an answer

// What accord says, as JSON on one line, or "".
function ask(event, given) {
  return new Promise((resolve) => {
    let said = ""
    const [program, ...words] = COMMAND
    const child = spawn(program, [...words, "hook", event, "--brain", "opencode"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: DEADLINE_MS,
    })
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(said))
    child.stdout.on("data", (data) => {
      if (said.length < MOST_CHARACTERS) said += data
    })
    child.stdin.on("error", () => {}) // it may end before it has read all
    child.stdin.end(JSON.stringify(given))
  })
}

async function text(event, given) {
  try {
    return JSON.parse(await ask(event, given)).text ?? ""
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
    return { isNew: true, answer: "", shownIn: "" } // which answer of the model is the newest, and was it shown text in
  }

  function given(id, session, more) {
    const answered = session.answer !== session.shownIn
    return { session_id: id, cwd: directory, answered, ...more }
  }

  return {
    event: async ({ event }) => {
      const part = event.properties?.part
      if (event.type !== "message.part.updated" || part?.type !== "step-start") return
      const session = await sessions.get(part.sessionID)
      if (session) session.answer = part.messageID
    },

    // A prompt: a person's, or one that we send below.
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const session = await find(sessionID)
      const first = parts.find((part) => part.type === "text")
      if (!session || !first || first.text.startsWith("<accord-mail ")) return
      session.agent = message.agent
      session.model = message.model
      const said = []
      if (session.isNew) said.push(await text("start", given(sessionID, session, {})))
      session.isNew = false
      said.push(await text("prompt", given(sessionID, session, { prompt: first.text })))
      const shown = said.filter(Boolean).join("\n")
      if (!shown) return
      session.shownIn = session.answer
      parts.push({ ...first, id: first.id + "accord", text: shown, synthetic: true })
    },

    "tool.execute.after": async ({ sessionID }, result) => {
      const session = await sessions.get(sessionID)
      if (!session || typeof result?.output !== "string") return
      const answer = session.answer
      const shown = await text("step", given(sessionID, session, {}))
      if (!shown) return
      session.shownIn = answer
      result.output += "\n\n" + shown
    },

    // The model has said something, and may be at its end: a prompt that is there by then makes it go on.
    "experimental.text.complete": async ({ sessionID, messageID }) => {
      const session = await sessions.get(sessionID)
      if (!session) return
      session.answer = messageID
      const shown = await text("stop", given(sessionID, session, {}))
      if (!shown) return
      session.shownIn = messageID
      const { agent, model } = session // without these, it would go on as the one that is set by default
      const parts = [{ type: "text", text: shown, synthetic: true }]
      await client.session.promptAsync({ path: { id: sessionID }, body: { noReply: true, agent, model, parts } }).catch(() => {})
    },

    dispose: async () => {
      const ids = [...sessions.keys()]
      await Promise.all(ids.map(async (id) => (await sessions.get(id)) && ask("end", { session_id: id })))
    },
  }
}
