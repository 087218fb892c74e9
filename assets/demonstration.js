// A scoring as eight steps that move, drawn as SVG and moved by CSS. All that is shown comes with `data`; nothing is asked for meanwhile.
// A step is left by key, button or link at once, whatever moves.

const SVG = "http://www.w3.org/2000/svg"
const WIDE = 900 // pixels from which parties stand beside each other
const DECKS = new WeakMap() // element -> Deck, for the code runs again with all new data
const TYPED_IN = "input, textarea, select, [contenteditable=true], [role=combobox], [role=dialog] *"

export default function ({ data, parentElement, setTriggerValue }) {
  let deck = DECKS.get(parentElement)
  if (!deck) {
    deck = new Deck(parentElement)
    DECKS.set(parentElement, deck)
  }
  deck.asks = () => setTriggerValue("asked", true)
  deck.show(data)
  return () => {
    deck.close()
    DECKS.delete(parentElement)
  }
}

class Deck {
  constructor(parent) {
    this.root = parent.querySelector(".deck")
    this.at = 0
    this.drawn = ""
    this.onKey = event => this.key(event)
    document.addEventListener("keydown", this.onKey)
    this.width = this.root.clientWidth
    this.resized = new ResizeObserver(() => {
      if (this.data && this.root.clientWidth !== this.width) {
        this.width = this.root.clientWidth
        this.draw(true)
      }
    })
    this.resized.observe(this.root)
  }

  close() {
    document.removeEventListener("keydown", this.onKey)
    this.resized.disconnect()
  }

  show(data) {
    const first = !this.data
    this.data = data
    if (first) {
      // Whoever changed the language, or came by a step's link, goes on from where they were.
      this.begun = new URL(location.href).searchParams.has("step")
      // The address knows the step that was left for; the server knows the one that the page was opened at.
      const id = new URL(location.href).searchParams.get("step") ?? data.start
      this.at = Math.max(0, data.steps.findIndex(step => step.id === id))
    }
    this.frame()
    this.draw(first)
  }

  // Draw what stands around every step, buttons and links, unless it stands already: who has reached one by keys stays there.
  frame() {
    const { labels, steps } = this.data
    const now = JSON.stringify([labels, steps.map(step => [step.id, step.title])])
    if (now === this.framed) return
    this.framed = now
    const nav = this.root.querySelector("nav")
    nav.setAttribute("aria-label", labels.steps)
    const parts = [button("back", "←", labels.back, () => this.go(this.at - 1))]
    steps.forEach((step, index) => {
      const link = element("a", { class: "step", href: address({ step: step.id }), title: step.title })
      link.textContent = index + 1
      link.setAttribute("aria-label", `${index + 1} ${step.title}`)
      link.onclick = event => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        this.go(index)
      }
      parts.push(link)
    })
    parts.push(button("next", `${labels.next} →`, labels.next, () => this.go(this.at + 1)))
    const other = element("a", { class: "other", href: address({ lang: labels.other_language }), lang: labels.other_language })
    other.textContent = labels.other
    this.other = other
    const leave = element("a", { class: "leave", href: labels.leave_to })
    leave.textContent = labels.leave
    this.leave = leave
    nav.replaceChildren(...parts, other, leave)
    this.root.querySelector(".keys").textContent = labels.keys
  }

  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return
    if (event.target instanceof Element && event.target.closest(TYPED_IN)) return
    const digit = Number(event.key)
    const steps = {
      ArrowRight: this.at + 1, PageDown: this.at + 1, " ": this.at + 1,
      ArrowLeft: this.at - 1, PageUp: this.at - 1,
      Home: 0, End: this.data.steps.length - 1,
    }
    const press = this.root.querySelector(".press")
    if (press && (event.key === "Enter" || event.key === "ArrowRight" || event.key === "PageDown" || event.key === " ")) press.click()
    else if (event.key in steps) this.go(steps[event.key])
    else if (digit >= 1 && digit <= this.data.steps.length) this.go(digit - 1)
    else if (event.key === "r" || event.key === "R") this.draw(true)
    else if (event.key === "l" || event.key === "L") this.other.click()
    else if (event.key === "Escape") this.leave.click()
    else return
    event.preventDefault()
  }

  go(index) {
    if (index < 0 || index >= this.data.steps.length) return
    this.at = index
    this.draw(true)
  }

  // Draw the step, unless what it shows is drawn already: news of another step must not begin it again.
  draw(anew) {
    const step = this.data.steps[this.at]
    const now = JSON.stringify(step)
    if (!anew && now === this.drawn) {
      this.mark()
      return
    }
    this.drawn = now
    this.root.dataset.step = step.id
    this.root.querySelector(".count").textContent = `${this.at + 1} / ${this.data.steps.length}`
    const title = this.root.querySelector("h2")
    title.textContent = step.title
    this.root.querySelector(".words").textContent = step.words
    const stage = this.root.querySelector(".stage")
    stage.replaceChildren()
    this.label = element("p", { class: "bytes", role: "status" })
    stage.append(this.label)
    const box = { width: stage.clientWidth, height: Math.max(stage.clientHeight, 240) }
    const paint = { parties, ask, hosts, sum, answer, attack, race, learned }[step.id]
    if (step.waiting) {
      stage.append(waiting(step.waiting))
      if (step.press) stage.append(button("press", step.press, step.press, () => this.asks()))
      if (step.cards?.length) cards(stage, step.cards, "asked")
    } else paint(this, stage, step, box)
    this.mark()
    history.replaceState(history.state, "", address({ step: step.id }))
    if (this.begun) title.focus({ preventScroll: true })
    this.begun = true
  }

  mark() {
    const nav = this.root.querySelector("nav")
    nav.querySelectorAll("a.step").forEach((link, index) => {
      if (index === this.at) link.setAttribute("aria-current", "step")
      else link.removeAttribute("aria-current")
      link.href = address({ step: this.data.steps[index].id })
    })
    nav.querySelector(".back").disabled = this.at === 0
    nav.querySelector(".next").disabled = this.at === this.data.steps.length - 1
    this.other.href = address({ step: this.data.steps[this.at].id, lang: this.data.labels.other_language })
  }

  // Show the bytes of a box below it.
  point(words, x, y, width) {
    this.label.textContent = words
    this.label.style.top = `${y}px`
    const half = this.label.offsetWidth / 2
    this.label.style.left = `${Math.min(Math.max(x, half), width - half)}px`
  }
}

// -- small parts ----------------------------------------

function element(name, attributes = {}) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

function text(name, kind, words) {
  const made = element(name, { class: kind })
  made.textContent = words
  return made
}

function drawn(name, attributes = {}, words = "") {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  if (words) made.textContent = words
  return made
}

function button(kind, words, label, act) {
  const made = text("button", kind, words)
  made.type = "button"
  made.setAttribute("aria-label", label)
  made.onclick = act
  return made
}

function address(changes) {
  const here = new URL(location.href)
  for (const [key, value] of Object.entries(changes)) here.searchParams.set(key, value)
  return `${here.pathname}${here.search}`
}

// A key or a lock beside words.
function icon(kind) {
  const svg = drawn("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" })
  const path = {
    key: "M8 6 a6 6 0 1 0 5.6 8 H17 v3 h4 v-3 h2 v-4 H13.6 A6 6 0 0 0 8 6 Z M8 10 a2 2 0 1 1 0 4 a2 2 0 0 1 0 -4 Z",
    lock: "M6 10 V8 a6 6 0 0 1 12 0 v2 h2 v12 H4 V10 Z M9 10 h6 V8 a3 3 0 0 0 -6 0 Z",
  }[kind]
  svg.append(drawn("path", { d: path, "fill-rule": "evenodd" }))
  return svg
}

function waiting(words) {
  return text("p", "waiting", words)
}

function picture(stage, width, height, label) {
  const made = drawn("svg", { width, height, role: "group", "aria-label": label })
  stage.append(made)
  return made
}

// -- parties and their boxes ----------------------------------------

// Where each party stands, and the grid of boxes below its name: beside each other, or on a phone below each other.
function places(deck, width, height, most) {
  const { parties } = deck.data
  const wide = width >= WIDE
  const letter = wide ? 30 : 18
  return parties.map((party, index) => {
    if (wide) {
      const across = width / parties.length
      const inside = Math.min(across - 60, 330)
      const top = 64
      const pitch = pitched(most, inside, height - top - 60)
      return { party, x: index * across + (across - inside) / 2, y: 34, top, pitch, columns: Math.floor(inside / pitch), inside, letter }
    }
    const each = height / parties.length
    const pitch = pitched(most, width - 8, each - 62)
    const y = index * each + 20
    return { party, x: 4, y, top: y + 12, pitch, columns: Math.floor((width - 8) / pitch), inside: width - 8, letter }
  })
}

// Pixels from one box to the next, so that all fit.
function pitched(most, width, height) {
  for (let pitch = 34; pitch > 6; pitch--) {
    if (Math.ceil(most / Math.floor(width / pitch)) * pitch <= height) return pitch
  }
  return 6
}

function spot(place, index) {
  return {
    x: place.x + (index % place.columns) * place.pitch,
    y: place.top + Math.floor(index / place.columns) * place.pitch,
  }
}

function name(svg, place) {
  const { party, x, y, letter } = place
  const shown = drawn("text", { x, y, class: "party", "font-size": letter })
  shown.append(drawn("tspan", { fill: party.colour }, `${party.glyph} `), drawn("tspan", {}, party.title))
  svg.append(shown)
}

// Boxes of one party. `from` = where each comes from; `words` say what each is, read when it is pointed at or reached by keys.
function boxes(deck, svg, place, width, { count, bytes, from, kind = "", after = 0, dropped, locker, words }) {
  const size = Math.max(place.pitch - 5, 4)
  const group = drawn("g", { class: `boxes ${kind}`, tabindex: bytes.length ? 0 : -1, role: "group", "aria-label": words.group })
  group.style.setProperty("--locker", locker)
  const rows = Math.ceil(count / place.columns)
  group.append(drawn("rect", {
    class: "ring", x: place.x - 5, y: place.top - 5, rx: 6,
    width: place.columns * place.pitch + 5, height: rows * place.pitch + 5,
  }))
  const every = []
  for (let index = 0; index < count; index++) {
    const { x, y } = spot(place, index)
    const start = from ? from(index) : { x, y }
    const box = drawn("g", { class: "box" })
    if (dropped && dropped[index]) box.classList.add("dropped")
    box.style.setProperty("--dx", `${start.x - x}px`)
    box.style.setProperty("--dy", `${start.y - y}px`)
    box.style.setProperty("--after", `${after + (index / count) * 0.9}s`)
    box.append(
      drawn("rect", { class: "lid", x, y, width: size, height: size, rx: size / 5 }),
      drawn("circle", { class: "hole", cx: x + size / 2, cy: y + size / 2, r: size / 6 }),
    )
    every.push(box)
    group.append(box)
    if (!bytes[index]) continue
    box.onpointerenter = () => reach(index)
    box.onclick = () => reach(index)
  }
  let reached = -1
  const reach = index => {
    every[reached]?.classList.remove("reached")
    reached = index
    every[index].classList.add("reached")
    const { x, y } = spot(place, index)
    const said = words.box.replace("{i}", index + 1).replace("{n}", count).replace("{bytes}", bytes[index])
    deck.point(said, x + size / 2, y + place.pitch + 4, width)
  }
  if (bytes.length) {
    group.onfocus = () => reach(Math.max(reached, 0))
    group.onkeydown = event => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
      if (!by) return
      event.preventDefault()
      event.stopPropagation()
      reach((reached + by + bytes.length) % bytes.length)
    }
  }
  svg.append(group)
  return every
}

// -- the steps ----------------------------------------

function cards(stage, every, kind) {
  const list = element("div", { class: `cards ${kind}` })
  every.forEach((card, index) => {
    const shown = element("section", { class: "card" })
    shown.style.setProperty("--colour", card.colour)
    shown.style.setProperty("--after", `${index * 0.35}s`)
    const heading = element("h3")
    const glyph = text("span", "glyph", card.glyph)
    glyph.setAttribute("aria-hidden", "true")
    heading.append(glyph, ` ${card.title}`)
    shown.append(heading)
    card.lines.forEach(line => {
      const row = element("p", { class: line.kind || "" })
      if (line.icon) row.append(icon(line.icon), " ")
      row.append(line.text)
      shown.append(row)
    })
    list.append(shown)
  })
  stage.append(list)
}

function parties(deck, stage, step) {
  cards(stage, step.cards, "meet")
}

function ask(deck, stage, step, { width, height }) {
  const svg = picture(stage, width, height, step.title)
  const all = places(deck, width, height, step.count)
  all.forEach(place => name(svg, place))
  const [bank, first] = all
  const from = index => spot(bank, index)
  boxes(deck, svg, bank, width, { count: step.count, bytes: [], kind: "left", locker: bank.party.colour, words: step.box })
  boxes(deck, svg, first, width, {
    count: step.count, bytes: step.bytes, from, kind: "fly", after: 1.6, locker: bank.party.colour, words: step.box,
  })
}

function hosts(deck, stage, step, { width, height }) {
  const svg = picture(stage, width, height, step.title)
  const most = Math.max(...step.hosts.map(host => host.count))
  const all = places(deck, width, height, most)
  all.forEach(place => name(svg, place))
  let before = all[0]
  let sender = all[0]
  boxes(deck, svg, all[0], width, { count: step.hosts[0].count, bytes: [], kind: "left", locker: all[0].party.colour, words: step.hosts[0].box })
  step.hosts.forEach((host, index) => {
    const place = all.find(one => one.party.name === host.name)
    const origin = before
    boxes(deck, svg, place, width, {
      count: host.count, bytes: host.bytes, from: at => spot(origin, at), kind: index ? "work passed" : "work", after: index * 4.6,
      dropped: host.dropped, locker: place.party.colour, words: host.box,
    }).forEach(box => box.style.setProperty("--sender", sender.party.colour))
    svg.append(under(place, host.count, host.said, index * 4.6 + 2.4))
    before = place
    sender = place
  })
}

// A line below a grid, in the size of the step's words.
function under(place, count, words, after) {
  const y = place.top + Math.ceil(count / place.columns) * place.pitch + place.letter
  const shown = drawn("text", { x: place.x, y, class: "under", "font-size": Math.max(place.letter - 2, 16) }, words)
  shown.style.setProperty("--after", `${after}s`)
  return shown
}

function sum(deck, stage, step, { width, height }) {
  const svg = picture(stage, width, height, step.title)
  const all = places(deck, width, height, 1)
  all.forEach(place => name(svg, place))
  const bank = all[0]
  const last = all.find(place => place.party.name === step.last)
  const size = width >= WIDE ? 150 : 52
  const x = bank.x + 10
  const y = bank.top + size * 0.6
  const group = drawn("g", { class: "one", tabindex: 0, role: "group", "aria-label": step.box.group })
  group.style.setProperty("--dx", `${last.x - x}px`)
  group.style.setProperty("--dy", `${last.top - bank.top}px`)
  group.style.setProperty("--locker", last.party.colour)
  group.append(
    drawn("path", { class: "shackle", d: `M ${x + size * 0.3} ${y} v ${-size * 0.08} a ${size * 0.2} ${size * 0.2} 0 0 1 ${size * 0.4} 0 v ${size * 0.08}` }),
    drawn("rect", { class: "lid", x, y, width: size, height: size, rx: size / 8 }),
    drawn("circle", { class: "hole", cx: x + size / 2, cy: y + size / 2, r: size / 9 }),
  )
  const say = () => deck.point(step.box.box.replace("{bytes}", step.bytes), x + size / 2, y + size + 10, width)
  group.onpointerenter = say
  group.onfocus = say
  svg.append(group)
  // Its bytes are said once it has arrived.
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) say()
  else group.addEventListener("animationend", say, { once: true })
  const big = text("p", "big side", step.big)
  stage.append(big)
}

function answer(deck, stage, step, { width }) {
  const left = element("div", { class: "answer" })
  left.append(text("p", "huge", step.big), text("p", "of", step.of), text("p", `decision ${step.decision_kind}`, step.decision))
  if (step.points) left.append(text("p", "points", step.points))
  const right = element("div", { class: "why" })
  right.append(text("h3", "", step.why))
  const list = element("ul")
  step.reasons.forEach((reason, index) => {
    const line = element("li")
    line.style.setProperty("--after", `${1.2 + index * 0.5}s`)
    const glyph = text("span", "glyph", `${reason.glyph} `)
    glyph.style.color = reason.colour
    glyph.setAttribute("aria-hidden", "true")
    line.append(glyph, reason.text)
    list.append(line)
  })
  if (step.reasons.length) right.append(list)
  if (step.reasons_said) right.append(text("p", "", step.reasons_said))
  const both = element("div", { class: "columns" })
  both.append(left, right)
  stage.append(both)
  if (!step.bands) return
  const room = width - 2
  const svg = picture(both, room, 84, step.bands_said)
  step.bands.forEach(band => {
    svg.append(
      drawn("rect", { class: `band ${band.kind}`, x: band.from * room, y: 34, width: (band.to - band.from) * room, height: 16 }),
    )
    const named = drawn("text", { class: "bandname", x: band.from * room + 4, y: 80, "font-size": width >= WIDE ? 28 : 16 }, band.title)
    svg.append(named)
    if (named.getComputedTextLength() > (band.to - band.from) * room) named.remove()
  })
  const mark = drawn("path", { class: "here", d: "M 0 32 l -11 -22 h 22 z" })
  mark.style.setProperty("--x", `${Math.min(Math.max(step.at, 0), 1) * room}px`)
  svg.append(mark)
}

function attack(deck, stage, step) {
  const list = element("div", { class: "cards pair" })
  step.sides.forEach((side, index) => {
    const shown = element("section", { class: `card side ${side.kind}` })
    shown.style.setProperty("--after", `${index * 2}s`)
    const bar = drawn("svg", { width: "100%", height: 56, role: "img", "aria-label": side.counted })
    const full = drawn("rect", { class: "track", x: 0, y: 14, width: "100%", height: 28, rx: 6 })
    const part = drawn("rect", { class: "part", x: 0, y: 14, width: `${side.rate * 100}%`, height: 28, rx: 6 })
    const chance = `${step.chance * 100}%`
    bar.append(full, part, drawn("line", { class: "chance", x1: chance, x2: chance, y1: 4, y2: 52 }))
    shown.append(text("h3", "", side.title), text("p", "big", side.big), bar, text("p", "", side.counted))
    list.append(shown)
  })
  const more = text("p", "more", `${deck.data.labels.in_the_lab} `)
  deck.data.lab.forEach(one => {
    const link = text("a", "", one.title)
    link.href = one.to
    more.append(link, " ")
  })
  stage.append(list, text("p", "note", step.note), more)
}

function race(deck, stage, step) {
  const list = element("div", { class: "lanes" })
  const longest = Math.max(...step.lanes.map(lane => lane.seconds))
  const pace = Math.min(1, 8 / longest) // seconds on the page for a second of the race
  step.lanes.forEach(lane => {
    const shown = element("section", { class: `lane ${lane.ours ? "ours" : ""}` })
    const bar = drawn("svg", { width: "100%", height: 36, role: "img", "aria-label": `${lane.title}: ${lane.time}. ${lane.read}` })
    const part = drawn("rect", { class: "part", x: 0, y: 4, width: `${(lane.seconds / longest) * 100}%`, height: 28, rx: 6 })
    part.style.setProperty("--lasts", `${lane.seconds * pace}s`)
    bar.append(part)
    const after = text("p", "", `${lane.time} · ${lane.read}`)
    after.style.setProperty("--after", `${lane.seconds * pace}s`)
    after.classList.add("later")
    shown.append(text("h3", "", lane.title), bar, after)
    list.append(shown)
  })
  stage.append(list, text("p", "note", step.note))
}

function learned(deck, stage, step) {
  cards(stage, step.cards, "got")
}
