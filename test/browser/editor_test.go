package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
)

// ctrl presses keys together with Ctrl.
func (b *tab) ctrl(keys string) {
	b.t.Helper()
	b.do(pressed(keys, chromedp.ModifierCtrl))
}

// keys types keys in the focused element.
func (b *tab) keys(text string) {
	b.t.Helper()
	b.do(pressed(text, 0))
}

// pressed sends keys as a keyboard does. If a page handles a key, the key types no character; chromedp.KeyEvent would type it even then.
func pressed(keys string, with chromedp.Modifier) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, r := range keys {
			var down *input.DispatchKeyEventParams
			for _, k := range kb.Encode(r) {
				k.Modifiers |= int64(with)
				switch k.Type {
				case kb.KeyDown:
					down = k
					continue
				case kb.KeyChar:
					if with == 0 {
						down.Text, down.UnmodifiedText = k.Text, k.UnmodifiedText
					}
					continue
				}
				for _, event := range []*input.DispatchKeyEventParams{down, k} {
					if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, *event); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// jobFile opens a text on the Submit page, like a file that the person chooses.
func (b *tab) jobFile(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text) // a text
	b.run(fmt.Sprintf(`(() => { const d = new DataTransfer(), i = document.querySelector('.submit input[type=file]'); d.items.add(new File([%s], 'job.yaml')); i.files = d.files; i.dispatchEvent(new Event('change', {bubbles: true})) })()`, quoted))
}

// checks waits until the page has sent exactly this text to the server's check.
func (b *tab) checks(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text) // a text
	b.shows(fmt.Sprintf("window.checked === %s", quoted))
}

// remembers is a script that stores the last text that the page has sent to the server's check.
const remembers = `(() => { const f = window.fetch; window.fetch = (a, o) => { if (String(a).includes('check=true')) window.checked = JSON.parse(o.body).text; return f(a, o) } })()`

func TestTheEditorOfJobFiles(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	var broken atomic.Bool
	server := w.TLS.Config.Handler
	w.TLS.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if broken.Load() && strings.HasSuffix(r.URL.Path, "/editor.js") {
			http.NotFound(out, r)
			return
		}
		server.ServeHTTP(out, r)
	})

	// Only pages with an editor load it. If the editor can't be loaded, the page shows a plain field.
	broken.Store(true)
	b.signIn(w, "/", "ann")
	b.has("main", "My jobs")
	assert.Zero(t, script[int](t, b.ctx, "performance.getEntriesByType('resource').filter(e => /(editor|terminal)\\.js/.test(e.name)).length"))
	b.press(".side a", "Submit")
	b.has(".submit", "The editor couldn't be loaded")
	b.press(".nothing button", "Start from the example")
	b.has(".verdict", "The server accepts this job")
	b.shows("document.querySelector('.editor textarea').value.includes('taskRoles')")
	b.do(chromedp.SendKeys(chromedp.CSS("textarea"), "\nwrong: true"))
	b.shows("document.querySelector('.gutter .bad')")

	broken.Store(false)
	b.run("(a => { a.value = ''; a.dispatchEvent(new Event('input', {bubbles: true})) })(document.querySelector('textarea'))")
	b.has(".nothing", "Start from the example")
	b.do(chromedp.Navigate(w.URL+"/jobs"), chromedp.Navigate(w.URL+"/submit"))
	b.shows("document.querySelector('.cm-content') && !document.querySelector('textarea')")
	b.run(remembers)

	// If a person doesn't change a text, the text stays identical to the byte. The same is true after a change that is undone.
	for _, text := range []string{
		"name: a\r\ntype: job\r\n", "name: a\r\ntype: job", "name: a\r\ntype: job\nversion: 2\r", "\tname:\ta \n\n\n", "no end of line", "#\n\n", "#\r\n\r\n",
		"name: <img src=x onerror=alert(1)> </textarea><script>alert(1)</script>\n# \u202egnp.exe \u0000\u001b[31m \u2028 é 👩‍🔬 \ufffd\n",
		"name: " + strings.Repeat("x", 100_000) + "\n" + strings.Repeat("- [{]}&*!|>%@`'\"\n", 2000),
	} {
		b.jobFile(text)
		b.checks(text)
		b.run("document.querySelector('.cm-content').focus()")
		b.ctrl(kb.Home)
		b.keys("#")
		b.checks("#" + text)
		b.keys(kb.Backspace)
		b.checks(text)
	}
	b.shows("!document.querySelector('.cm-content img[src], .cm-content script')")

	// The findings of the server are shown at their line and column.
	b.jobFile(exampleFile + "wrong: true\n")
	b.has(".verdict", "The server doesn't accept this job")
	b.shows("document.querySelector('.cm-lint-marker-error') && document.querySelector('.cm-lintRange-error').textContent === 'wrong'")
	b.press(".findings button", "Line 14")
	b.shows("document.activeElement.classList.contains('cm-content') && document.querySelector('.cm-activeLine').textContent === 'wrong: true'")
	b.keys(kb.End + kb.Enter + "again")
	b.has(".cm-content", "again")

	// The schema completes values, and the keys that are valid at a place.
	const role = "prerequisites:\n  - name: py\n    type: dockerimage\n    uri: python\ntaskRoles:\n  worker:\n    instances: 1\n    "
	complete := func(text, typed, offers string) {
		b.jobFile(text)
		b.checks(text)
		b.run("document.querySelector('.cm-content').focus()")
		b.ctrl(kb.End)
		b.keys(typed)
		if typed == "" {
			b.ctrl(" ")
		}
		b.has(".cm-tooltip-autocomplete li", offers)
	}
	complete(role, "dock", "dockerImage")
	b.shows("!document.querySelector('.cm-tooltip-autocomplete').innerText.includes('instances')")
	b.do(chromedp.Sleep(100 * 1e6)) // the editor ignores Enter just after the list appears
	b.keys(kb.Enter)
	b.checks(role + "dockerImage: ")
	b.ctrl(" ")
	b.has(".cm-tooltip-autocomplete li", "py")
	b.keys(kb.Escape)
	complete("taskRoles:\n  worker:\n    resourcePerInstance:\n      ", "me", "memoryMB")
	b.keys(kb.Escape)
	complete("defaults:\n  virtualCluster: ", "", "speech")
	b.keys(kb.Escape)
	complete("prerequisites:\n- name: x\n  type: ", "", "dockerimage")
	b.keys(kb.Escape)
	complete("extras:\n  hivedScheduler:\n    jobPriorityClass: ", "", "oppo")
	b.keys(kb.Escape)

	// The Tab key indents, and leaves the editor after Escape. The shortcuts of the pages aren't typed into the editor.
	b.jobFile("a:\n")
	b.checks("a:\n")
	b.run("document.querySelector('.cm-content').focus()")
	b.ctrl(kb.End)
	b.keys(kb.Tab + "n?gj")
	b.checks("a:\n  n?gj")
	b.keys(kb.Escape + kb.Tab)
	b.shows("!document.activeElement.closest('.cm-editor')")
	b.shows("location.pathname === '/submit'")

	// Ctrl+Enter submits the job.
	b.jobFile(exampleFile)
	b.has(".verdict", "The server accepts this job")
	b.run("document.querySelector('.cm-content').focus()")
	b.ctrl(kb.Enter)
	b.shows("location.pathname === '/jobs/ann/from-the-editor'")
}

const exampleFile = `protocolVersion: 2
name: from-the-editor
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "python:3.12"}
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 1}
    commands: [nvidia-smi]
defaults:
  virtualCluster: speech
`
