package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
)

// shell simulates a shell in a container.
func shell(p *jobtest.Process) *metav1.Status {
	var size atomic.Value
	size.Store("")
	go func() {
		for sizes := json.NewDecoder(p.Sizes); ; {
			s := struct{ Width, Height int }{}
			if sizes.Decode(&s) != nil {
				return
			}
			size.Store(fmt.Sprintf("%dx%d", s.Width, s.Height))
		}
	}()
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(p.Stdout, format, args...) }
	say("\x1b[32mroot@task\x1b[0m:~# ")
	line, one := "", make([]byte, 1)
	for {
		if _, err := io.ReadFull(p.Stdin, one); err != nil {
			return nil
		}
		if one[0] != '\r' {
			line += string(one)
			say("%s", one)
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		line = ""
		say("\r\n")
		switch word {
		case "size":
			say("size %s\r\n", size.Load())
		case "args":
			say("%s tty=%s\r\n", strings.Join(p.Args[3:], " "), p.Query.Get("tty"))
		case "colours":
			say("\x1b[38;2;12;200;99mtrue\x1b[0m \x1b[31mred\x1b[0m \x1b[1;4mbold\x1b[0m\r\n")
		case "hostile":
			say("<b>no</b><script>alert(1)</script>\x1b]0;a title\x07\x1b]52;c;aGFja2Vk\x07\x1b]8;;https://evil.example/\x1b\\a link\x1b]8;;\x1b\\\x1b[8;5;5t\x1b[21t\r\n")
		case "flood":
			chunk := []byte(strings.Repeat("0123456789abcdef", 4096))
			for range 400 {
				_, _ = p.Stdout.Write(chunk)
			}
			say("\r\n")
		case "cut":
			return nil
		case "exit":
			code := 0
			_, _ = fmt.Sscan(rest, &code)
			return jobtest.Exited(code)
		}
		say("\x1b[32mroot@task\x1b[0m:~# ")
	}
}

func TestAShellInATask(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	w.submit("ann", "train", "speech", 2)
	w.run("ann", "train")
	w.submit("bob", "other", "speech", 1)
	w.run("bob", "other")

	b.signIn(w, "/jobs/bob/other", "ann")
	b.has(".tasks", "Worker_1[0]")
	b.has(".actions", "Clone")
	b.shows("document.querySelector('.tabs a') && !document.querySelector('.tabs').innerText.includes('Shell') && !document.querySelector('.c-shell')")
	b.do(chromedp.Navigate(w.URL + "/jobs/bob/other?tab=shell"))
	b.has(".tasks", "Worker_1[0]")

	// Opening the address of the tab doesn't open a shell.
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/train?tab=shell"))
	b.has("[role=tabpanel]", "Open a shell")
	b.shows("!document.querySelector('.shell')")
	b.press("[role=tabpanel] button", "Open a shell")
	b.has(".shell [role=status]", "Connected")
	b.keys("exit 0" + kb.Enter)
	b.has(".shell [role=status]", "The shell ended with status 0.")

	b.do(chromedp.Navigate(w.URL + "/jobs/ann/train"))
	b.shows("document.querySelectorAll('.tasks .c-shell a').length === 2")
	b.run("document.querySelectorAll('.tasks .c-shell a')[1].click()")
	b.shows("location.search === '?tab=shell&task=' + encodeURIComponent('Worker_1[1]')")
	prompt := func() {
		b.t.Helper()
		b.shows("[...document.querySelectorAll('.xterm-rows > div')].map(e => e.textContent.trim()).filter(Boolean).at(-1) === 'root@task:~#'")
	}
	prompt()
	b.has(".shell [role=status]", "Connected")
	b.shows("document.activeElement.classList.contains('xterm-helper-textarea')")
	b.keys("args" + kb.Enter)
	b.has(".xterm-rows", "sh xterm-256color tty=true")

	// The program gets the size of the terminal, and each change of the size.
	size := func() string {
		b.run("window.before = document.querySelector('.xterm-rows').innerText.split('size ').length")
		b.keys("size" + kb.Enter)
		b.shows("document.querySelector('.xterm-rows').innerText.split('size ').length > before")
		prompt()
		return script[string](t, b.ctx, "document.querySelector('.xterm-rows').innerText.match(/size (\\d+x\\d+)/g).at(-1)")
	}
	first := size()
	assert.Regexp(t, `^size 1\d\dx\d\d$`, first)
	b.do(chromedp.EmulateViewport(1000, 700))
	b.shows("document.querySelectorAll('.xterm-rows > div').length < " + strings.SplitAfter(first, "x")[1])
	assert.NotEqual(t, first, size())
	b.do(chromedp.EmulateViewport(1440, 900))

	// Colors are displayed without style attributes in the document, because the content policy forbids these.
	b.keys("colours" + kb.Enter)
	b.has(".xterm-rows", "true red bold")
	b.shows("[...document.querySelectorAll('.xterm-rows span')].some(e => e.textContent === 'true' && getComputedStyle(e).color !== getComputedStyle(document.querySelector('.xterm-rows')).color)")
	b.shows("document.querySelectorAll('style').length === 0")

	// The output of a program can't affect the page outside the terminal.
	b.keys("hostile" + kb.Enter)
	b.has(".xterm-rows", "<b>no</b><script>alert(1)</script>a")
	prompt()
	b.shows("document.title === 'train – paictl' && !document.querySelector('.xterm-rows script, .xterm a')")

	// The page supports copy and paste. A copied text may come from another person, so it must not be able to end the paste or to press keys.
	b.run("Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {writeText: async t => { window.copied = t }, readText: async () => 'past\\x1b\\x7fed\\x9b'}})")
	b.press(".shell button", "Paste")
	b.has(".xterm-rows", "root@task:~# pasted")
	b.run("(d => { d.setData('text/plain', '\\x7f\\x1b\\x15'); document.querySelector('.xterm-helper-textarea').dispatchEvent(new ClipboardEvent('paste', {clipboardData: d, bubbles: true, cancelable: true})) })(new DataTransfer())")
	at := script[[]float64](t, b.ctx, "(r => { const x = document.querySelector('.xterm-screen').getBoundingClientRect(); const row = [...r.children].findLast(e => e.textContent.includes('pasted')).getBoundingClientRect(); return [x.left + 15 * row.height / 2.2, row.top + row.height / 2] })(document.querySelector('.xterm-rows'))")
	b.do(chromedp.MouseClickXY(at[0], at[1]), chromedp.MouseClickXY(at[0], at[1], chromedp.ClickCount(2)))
	b.press(".shell button", "Copy")
	b.shows("window.copied === 'pasted'")
	b.run("document.querySelector('.xterm-helper-textarea').focus()")
	b.keys(kb.Enter)
	prompt()

	// The shell stays open while the person reads the log.
	b.press(".tabs a", "Logs")
	b.has(".screen", "epoch")
	b.shows("document.querySelector('.shell').hidden")
	b.press(".tabs a", "Shell")
	b.has(".xterm-rows", "true red bold")
	b.run("document.querySelector('.xterm-helper-textarea').focus()")

	// More output than the terminal can display doesn't exhaust the memory of the browser.
	b.keys("flood" + kb.Enter)
	b.has(".xterm-rows", "0123456789abcdef")
	prompt()

	// A keyboard shortcut leaves the terminal.
	b.ctrl(kb.F6)
	b.shows("document.activeElement.tagName === 'SELECT'")
	b.run("document.querySelector('.xterm-helper-textarea').focus()")

	// The page shows how the shell has ended, and can open another shell.
	b.keys("exit 7" + kb.Enter)
	b.has(".shell [role=status]", "The shell ended with status 7.")
	b.press(".shell button", "Open another shell")
	prompt()
	b.shows("!document.querySelector('.xterm-rows').innerText.includes('exit 7')")
	b.keys("cut" + kb.Enter)
	b.has(".shell [role=status]", "The connection ended.")
	b.press(".shell button", "Open another shell")
	prompt()

	b.do(chromedp.EmulateViewport(390, 844))
	b.shows("(r => r.left === 0 && r.top === 0 && r.width === 390 && r.height > 800)(document.querySelector('.shell').getBoundingClientRect())")
	b.shows("document.querySelector('.xterm').getBoundingClientRect().right <= 390")
	b.run("document.querySelector('.shell .back').click()")
	b.shows("document.querySelector('.shell').hidden && location.search === ''")
}
