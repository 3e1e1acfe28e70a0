package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/node/logstoretest"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// The log of a task is larger than the page can hold. A person scrolls through the log, searches all of it, follows its end, and sends a link to a
// line.
func TestTheLogOfATaskByPosition(t *testing.T) {
	b := openTab(t)
	m := logstoretest.New(t)
	w := newWorld(t, func(o *servertest.Options) { o.Logs = m })
	w.submit("bob", "train", "speech", 1)
	w.run("bob", "train")
	pods, err := w.cluster.Client.CoreV1().Pods(kube.JobNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: fv1.LabelFramework + "=" + fv1.ObjectName("bob", "train")})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1)
	uid, begun := string(pods.Items[0].UID), time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	const lines = 20_000
	for from := 0; from < lines; from += 1000 {
		var all []string
		for i := from + 1; i <= from+1000; i++ {
			text := fmt.Sprintf("\x1b[32mINFO\x1b[0m line %d.", i)
			if i == 123 || i == 15_000 {
				text += " A [Needle] <b>not bold</b>"
			}
			all = append(all, text)
			if i == lines-30 {
				all = append(all, strings.Repeat("x", 20_000)+" the end of a long line")
			}
		}
		m.Print(uid, begun.Add(time.Duration(from)*time.Second), all...)
	}

	b.signIn(w, "/jobs/bob/train?tab=logs", "ann")
	b.has(".screen", "line 20000.")
	b.shows("document.querySelector('.screen .ansi2').textContent === 'INFO'")
	visible := func(text string) string {
		return fmt.Sprintf("[...document.querySelectorAll('.screen .l')].some(l => { const r = l.getBoundingClientRect(), f = document.querySelector('.screen').getBoundingClientRect(); return l.innerText.includes(%q) && r.bottom > f.top && r.top < f.bottom })", text)
	}
	few := func() {
		t.Helper()
		assert.LessOrEqual(t, script[int](t, b.ctx, "document.querySelectorAll('.screen .l').length"), 3000)
	}
	b.shows(visible("line 20000."))

	// A long line is truncated until the user asks for the whole line.
	b.shows("!document.querySelector('.screen').innerText.includes('the end of a long line')")
	b.press(".screen .l button", "Show all of this line")
	b.has(".screen", "the end of a long line")
	b.press(".to-end", "Follow")
	b.shows(visible("line 20000."))

	// The end of the log is live.
	m.Print(uid, begun.Add(lines*time.Second), "this line is new")
	b.shows(visible("this line is new"))

	// When the person scrolls up, earlier lines are loaded and later lines are removed from the page.
	for _, n := range []int{19_000, 17_000, 14_500} {
		for range 40 {
			if script[bool](t, b.ctx, fmt.Sprintf("document.querySelector('.screen').innerText.includes('line %d.')", n)) {
				break
			}
			first := script[string](t, b.ctx, "document.querySelector('.screen .l .t').textContent")
			b.run("document.querySelector('.screen').scrollTop = 0")
			b.shows(fmt.Sprintf("document.querySelector('.screen .l .t').textContent !== %q", first))
		}
		b.has(".screen", fmt.Sprintf("line %d.", n))
		few()
	}
	b.has(".to-end", "Follow")
	b.press(".to-end", "Follow")
	b.shows(visible("this line is new"))

	// The search covers the whole log.
	b.press(".places button", "Start")
	b.shows(visible("line 1."))
	b.do(chromedp.SendKeys(chromedp.CSS(".logs .search input"), "[needle]"))
	b.has(".hits", "1 of 2")
	b.shows(visible("line 123."))
	b.shows("document.querySelectorAll('.screen b').length === 0 && document.querySelector('.screen .here mark').textContent === '[Needle]'")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.has(".hits", "2 of 2")
	b.shows(visible("line 15000."))
	few()
	b.run("document.querySelector('.logs button[aria-pressed]').click()")
	b.has(".hits", "1 of 10000+") // it is now a set of letters, and there are too many matches
	b.run("document.querySelector('.logs button[aria-pressed]').click()")
	b.has(".hits", "1 of 2")

	// A link with a position leads to a line.
	b.run("[...document.querySelectorAll('.screen .l')].find(l => l.innerText.includes('line 14990.') || l.innerText.includes('line 124.')).querySelector('a').click()")
	b.shows("new URLSearchParams(location.search).get('at')")
	b.shows("document.querySelector('.screen .linked')")
	address := script[string](t, b.ctx, "location.pathname + location.search")
	linked := script[string](t, b.ctx, "document.querySelector('.screen .linked .t').textContent.match(/line \\d+\\./)[0]")
	b.do(chromedp.Reload())
	b.shows("document.querySelector('.screen .linked')")
	b.shows(visible(linked))
	assert.Equal(t, linked, script[string](t, b.ctx, "document.querySelector('.screen .linked .t').textContent.match(/line \\d+\\./)[0]"))
	b.run("document.querySelector('.screen').focus()")
	b.do(chromedp.KeyEvent(kb.End))
	b.shows(visible("this line is new"))
	b.do(chromedp.KeyEvent(kb.Home))
	b.shows(visible("line 1."))
	b.fill(".places input", "2026-11-30T08:46:40") // 10,000 s later
	b.shows("document.querySelector('.screen .linked')?.innerText.includes('line 10001.')")

	// A link to a line that doesn't exist leads to an error message.
	b.do(chromedp.Navigate(w.URL + "/jobs/bob/train?tab=logs&at=00000000.7"))
	b.has(".problem", "LogGoneError")
	b.do(chromedp.Navigate(w.URL + "/jobs/bob/train?tab=logs&at=-1"))
	b.has(".problem", "isn't a position")

	file := w.Do("GET", "/api/v3/jobs/bob/train/tasks/Worker_1/0/log/text", w.tokens["ann"], "")
	assert.Equal(t, "attachment; filename=train-Worker_1-0.log", file.Header.Get("Content-Disposition"))
	assert.Equal(t, lines+2, strings.Count(file.Body, "\n"))
	b.shows("document.querySelector('.logs a[download]').href.includes('/log/text')")
	assert.Equal(t, 404, w.Do("GET", "/api/v3/jobs/bob/train/tasks/Worker_1/0/log", w.tokens["vic"], "").Status)

	b.do(chromedp.EmulateViewport(390, 844))
	b.do(chromedp.Navigate(w.URL + "/jobs/bob/train?tab=logs"))
	b.shows(visible("this line is new"))
	b.shows("document.documentElement.scrollWidth <= 390")
	b.pictures(w, "log", address, "document.querySelector('.screen .linked')",
		"(e => { e.value = '[needle]'; e.dispatchEvent(new Event('input', {bubbles: true})) })(document.querySelector('.logs .search input'))",
		"document.querySelector('.hits')?.innerText === '1 of 2' && document.querySelector('.screen .here mark')")
}
