package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/job/api"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// tab is a tab of Chromium, with the messages on its console.
type tab struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	// said lists the errors and warnings on the console of the browser, such as violations of the content security policy.
	said []string
	// expected is part of the messages that a test expects on the console.
	expected string
}

// openTab opens a tab. The test fails if the console of the tab contains an error when the test ends.
func openTab(t *testing.T) *tab {
	t.Helper()
	ctx := open(t)
	b := &tab{t: t, ctx: ctx}
	t.Cleanup(b.fine)
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.said = append(b.said, m.String())
			b.mu.Unlock()
		}
	}()
	b.do(chromedp.EmulateViewport(1440, 900))
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// shows waits until a JavaScript expression is true.
func (b *tab) shows(expression string) {
	b.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			require.Fail(b.t, "the page doesn't show it", "%s (%v)\n%s\n%s", expression, err, text, strings.Join(b.console(), "\n"))
		}
		select {
		case <-b.t.Context().Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// has waits until an element that matches a selector contains a text.
func (b *tab) has(selector, text string) {
	b.t.Helper()
	b.shows(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text))
}

// press clicks the first element that matches a selector and contains a text.
func (b *tab) press(selector, text string) {
	b.t.Helper()
	b.has(selector, text)
	b.run(fmt.Sprintf("[...document.querySelectorAll(%q)].find(e => e.innerText.includes(%q)).click()", selector, text))
}

// run runs a JavaScript statement.
func (b *tab) run(statement string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Evaluate[any]("void ("+statement+")"))
	require.NoError(b.t, err)
}

// fill replaces the text of a field as if a person types. In a list, it selects an option once the option exists.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.shows(fmt.Sprintf("(e => e && (!e.options || [...e.options].some(o => o.value === %q)))(document.querySelector(%q))", text, selector))
	quoted, _ := json.Marshal(text) // a text
	b.run(fmt.Sprintf("(e => { e.focus(); e.value = %s; e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true})) })(document.querySelector(%q))", quoted, selector))
	b.run("new Promise(r => setTimeout(r))")
}

func (b *tab) console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.said...)
}

// signIn opens a page, signs in a person on the sign-in page, and waits until the page is shown.
func (b *tab) signIn(w *world, page, name string) {
	b.t.Helper()
	b.do(chromedp.Navigate(w.URL+page), chromedp.WaitVisible(chromedp.CSS(`input[name="username"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name="username"]`), name), chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), servertest.Password+kb.Enter))
	b.shows("document.querySelector('.side')")
}

func TestAResearchersDay(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.fill()

	b.signIn(w, "/jobs?state=failed", "ann")
	b.has(".jobs", "whisper-finetune")
	b.shows("location.pathname + location.search === '/jobs?state=failed'")
	b.shows("document.querySelectorAll('.jobs tbody tr').length === 1")

	// The first page shows the jobs of the person, and the free GPUs.
	b.press(".side a", "Home")
	b.has(".jobs", "wav2vec-large-960h")
	b.has(".vc", "22 free")
	b.menu("Copy as paictl")
	b.shows("window.copied === 'paictl job list'")
	b.menu("Copy as curl")
	b.shows("window.copied.includes('/api/v3/jobs?user=ann')")
	b.shows("!document.querySelector('.jobs').innerText.includes('conformer-s')")

	// The list follows changes on the server. The filters of the list are in its address.
	b.press(".side a", "Jobs")
	b.has(".jobs", "conformer-s")
	b.shows("document.querySelectorAll('.jobs tbody tr').length === 46")
	b.press(".segments button", "Mine")
	b.shows("location.search === '?user=ann' && !document.querySelector('.jobs').innerText.includes('conformer-s')")
	w.submit("ann", "just-now", "speech", 1)
	b.has(".jobs tr:first-child", "just-now")
	b.run("URL.createObjectURL = b => { b.text().then(t => window.saved = t); return '' }")
	b.press(".top button", "CSV")
	b.shows("window.saved?.startsWith('name,user,state,') && window.saved.includes('\\r\\nwhisper-finetune,ann,failed,speech,') && !window.saved.includes(',bob,')")

	// The page shows that the connection was lost. After that, the list contains the changes that happened during the interruption.
	w.away.Store(true)
	w.TLS.CloseClientConnections()
	b.has(".lost", "Not live")
	w.away.Store(false)
	w.submit("ann", "while-away", "speech", 1)
	b.has(".jobs", "while-away")
	b.shows("!document.querySelector('.lost')")

	b.do(chromedp.SendKeys(chromedp.CSS(".search input"), "wav2vec"))
	b.shows("document.querySelectorAll('.jobs tbody tr').length === 1 && document.activeElement.type === 'search'")
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("j"))
	b.shows("document.querySelector('.jobs tr.chosen')")

	// The page of a job explains the job's state. The log is live, and the page never treats it as HTML.
	b.do(chromedp.KeyEvent(kb.Enter))
	b.has(".why .sentence", "It has run for 42m")
	b.has(".tasks", "Worker_1[7]")
	b.press(".tabs a", "Logs")
	b.shows("location.search === '?tab=logs'")
	b.do(chromedp.SetValue(chromedp.CSS(".logs select"), "Worker_1[3]"))
	b.run("document.querySelector('.logs select').dispatchEvent(new Event('change', {bubbles: true}))")
	b.has(".screen", "<b>not bold</b> <script>alert(1)</script>")
	b.shows("document.querySelectorAll('.screen b, .screen script').length === 0")
	b.shows("document.querySelector('.screen .ansi2').textContent === 'INFO'")
	select {
	case w.lines <- "this line is new":
	case <-time.After(30 * time.Second):
		t.Fatal("no request follows the log")
	}
	b.has(".screen", "this line is new")
	b.do(chromedp.SendKeys(chromedp.CSS(".logs .search input"), "not bold"))
	b.shows("document.querySelectorAll('.screen mark').length === 1 && document.querySelector('.hits').innerText === '1 of 1'")

	// The page asks for confirmation before it stops a job.
	b.press(".actions button", "Stop")
	b.has("dialog[open]", "Stop wav2vec-large-960h?")
	b.press("dialog[open] button", "Cancel")
	b.shows("!document.querySelector('dialog[open]')")
	b.press(".actions button", "Stop")
	b.press("dialog[open] button.primary", "Stop")
	b.has(".top .state", "Stopping")
	assert.Equal(t, true, w.Do("GET", "/api/v3/jobs/ann/wav2vec-large-960h/brief", w.tokens["ann"], "").JSON()["stopAsked"])

	// A job that has ended shows its events and attempts. It runs again, and is deleted.
	require.NoError(t, w.Store.SaveEvents(t.Context(), fv1.ObjectName("ann", "whisper-finetune"), []api.Event{{UID: "e", Time: time.Now(), Type: "Warning", Reason: "OOMKilling", Message: "Memory cgroup out of memory", Object: "Pod/p", Count: 3}}))
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/whisper-finetune?tab=events"))
	b.has("tr.warning", "Memory cgroup out of memory")
	b.has("tr.warning", "×3")
	b.press(".tabs a", "Attempts")
	b.press(".attempt summary", "Attempt 0")
	b.has(".attempt tbody tr", "gpu-1")
	b.has(".attempt tbody tr", "137")
	b.press(".actions button", "Run again")
	b.has("dialog[open]", "Run whisper-finetune again?")
	b.press("dialog[open] button.primary", "Run again")
	w.letGo("ann", "whisper-finetune")
	b.has(".toasts", "The job runs again.")
	b.has(".top .state", "Waiting")
	b.menu("Delete")
	b.has("dialog[open]", "Delete whisper-finetune?")
	b.press("dialog[open] button.primary", "Delete")
	b.has(".toasts", "The job is deleted.")
	b.shows("location.pathname === '/jobs'")

	// The page doesn't offer operations that the server doesn't allow.
	b.do(chromedp.Navigate(w.URL + "/job-detail.html?username=bob&jobName=conformer-s"))
	b.has(".why .sentence", "It has run for 42m")
	b.shows("location.pathname === '/jobs/bob/conformer-s'")
	b.has(".actions", "Clone")
	b.shows("!document.querySelector('.actions').innerText.includes('Stop')")

	// An error is shown with the server's message, its code and the id of the request.
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/nothing"))
	b.has(".problem", "Job ann~nothing is not found.")
	b.has(".problem", "NoJobError")
	b.shows("/Request\\s+[A-Z0-9]{26}/.test(document.querySelector('.problem').innerText)")

	// A job file is checked while the person writes it. A copy of a job differs from the job only in its name.
	b.do(chromedp.Navigate(w.URL + "/submit?clone=bob/conformer-s"))
	b.has(".cm-content", "taskRoles")
	b.shows("!/^name: conformer-s$/m.test(document.querySelector('.cm-content').innerText)")
	b.has(".verdict", "The server accepts this job")
	b.run("document.querySelector('.cm-content').focus()")
	b.ctrl(kb.Home)
	b.keys("wrong: true" + kb.Enter)
	b.has(".verdict", "The server doesn't accept this job")
	b.shows("document.querySelector('.cm-lint-marker-error') && document.querySelector('.top .primary').disabled")
	for range 4 {
		b.ctrl("z")
	}
	b.has(".verdict", "The server accepts this job")
	b.press(".top .primary", "Submit job")
	b.shows("/^\\/jobs\\/ann\\//.test(location.pathname)")
	b.has(".top .state", "Waiting")

	// On a phone, no line is wider than the screen.
	b.do(chromedp.EmulateViewport(390, 844))
	for _, page := range []string{"/", "/jobs", "/jobs/ann/eval-librispeech", "/jobs/bob/conformer-s?tab=logs", "/jobs/ann/tokenize?tab=events", "/submit"} {
		b.do(chromedp.Navigate(w.URL + page))
		b.shows("document.querySelector('main h1, main .problem')")
		b.shows("document.documentElement.scrollWidth <= 390")
	}
}

// The pages are in the language of the browser, and in the language that the person chose before.
func TestPagesInChinese(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.submit("ann", "train", "speech", 1)
	b.signIn(w, "/", "ann")
	b.run("localStorage.setItem('language', 'zh')")
	for page, title := range map[string]string{"/": "ann", "/jobs": "作业", "/submit": "新建作业", "/machines": "机器", "/queue": "队列", "/templates": "模板", "/profile": "ann"} {
		b.do(chromedp.Navigate(w.URL + page))
		b.has("main h1", title)
		b.has(".side", "作业")
		b.shows("document.documentElement.lang === 'zh'")
	}
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/train"))
	b.has(".top .state", "等待")
}

// fine asserts that the console contains no errors. It ignores messages about error statuses of responses, because pages expect such responses.
func (b *tab) fine() {
	b.t.Helper()
	for _, m := range b.console() {
		if !strings.Contains(m, "Failed to load resource") && (b.expected == "" || !strings.Contains(m, b.expected)) {
			assert.Fail(b.t, "the console has an error", m)
		}
	}
}

// A site may use one address for several programs. A proxy then removes a prefix from the path before it forwards the request to the server.
func TestThePortalWorksBelowAPath(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	to, err := url.Parse(w.URL)
	require.NoError(t, err)
	proxy := httptest.NewTLSServer(http.StripPrefix("/pai", &httputil.ReverseProxy{Transport: w.Client.Transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}))
	t.Cleanup(proxy.Close)
	w.submit("ann", "train", "speech", 1)
	b.do(chromedp.Navigate(proxy.URL+"/pai/job-detail.html?username=ann&jobName=train"), chromedp.WaitVisible(chromedp.CSS(`input[name="username"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name="username"]`), "ann"), chromedp.SendKeys(chromedp.CSS(`input[name="password"]`), servertest.Password+kb.Enter))
	b.has(".top h1", "train")
	b.shows("location.pathname === '/pai/jobs/ann/train'")
	b.press(".side a", "Jobs")
	b.has(".jobs", "train")
	b.shows("location.pathname === '/pai/jobs'")
}
