package browser

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/test/programs"
)

func TestFilesOfATask(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	defer programs.Clean()
	dir, here, downloads := t.TempDir(), t.TempDir(), t.TempDir()
	hostile := `<img src=x onerror="window.hacked=1">`
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "ckpt", hostile), 0o700))
	weights := bytes.Repeat([]byte("weights "), 300_000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ckpt", "model 10.pt"), weights, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ckpt", "model 9.pt"), nil, 0o600))
	require.NoError(t, os.Symlink("model 10.pt", filepath.Join(dir, "ckpt", "latest")))
	w.files = servertest.RunRuntime(t, dir)
	w.submit("ann", "train", "speech", 2)
	w.run("ann", "train")
	b.signIn(w, "/jobs/ann/train", "ann")
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: downloads})
	require.NoError(t, err)

	b.press(".tabs a", "Files")
	b.press(".files td button", "ckpt")
	names := "[...document.querySelectorAll('tr[data-file]')].map(e => e.dataset.file).join('|')"
	b.shows(names + " === " + quote(hostile+"|latest|model 9.pt|model 10.pt"))
	b.shows("!window.hacked && document.querySelector('.files input[name=path]').value === " + quote(filepath.Join(dir, "ckpt")))
	b.has(".files tr", "2.3 MiB")
	b.has(".files tr", "→ model 10.pt")

	// A click downloads a file, or a folder as an archive.
	b.press(".files a", "model 10.pt")
	got := func(name string) []byte {
		t.Helper()
		var text []byte
		w.Eventually(name+" is downloaded", func() bool {
			var err error
			text, err = os.ReadFile(filepath.Join(downloads, name))
			return err == nil
		})
		return text
	}
	assert.True(t, bytes.Equal(weights, got("model 10.pt")))
	b.press(".files .button", "Folder")
	assert.Equal(t, []byte{0x1f, 0x8b}, got("ckpt.tar.gz")[:2])

	// An upload is stored in the folder that the page shows. The page asks before it replaces a file.
	send := func(name, text string) {
		t.Helper()
		file := filepath.Join(here, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		b.do(chromedp.SetUploadFiles(chromedp.CSS(".files input[type=file]"), []string{file}))
	}
	in := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, "ckpt", name))
		require.NoError(t, err)
		return string(text)
	}
	send("conf.yaml", "lr: 1")
	b.shows("document.querySelector('tr[data-file=\"conf.yaml\"]')")
	assert.Equal(t, "lr: 1", in("conf.yaml"))
	send("conf.yaml", "lr: 2")
	b.has("dialog", "Replace files of the task?")
	assert.Equal(t, "lr: 1", in("conf.yaml"))
	b.press("dialog button", "Replace")
	b.has(".toasts", "conf.yaml is in the task.")
	b.shows("!document.querySelector('dialog[open]')")
	w.Eventually("the file is replaced", func() bool { return in("conf.yaml") == "lr: 2" })

	// The address of the page contains the folder. A wrong folder leads to an error message.
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/train?tab=files&path=nowhere"))
	b.has(".problem", "there is no such file in the task")
	b.fill(".files input[name=path]", "ckpt")
	b.run("document.querySelector('.files form').requestSubmit()")
	b.shows("location.search.includes('path=ckpt') && document.querySelector('tr[data-file=latest]')")
	b.do(chromedp.Navigate(w.URL + "/jobs/ann/train?tab=files&path=ckpt/latest"))
	b.shows(names + " === 'latest'")
	b.run("document.querySelectorAll('.files .crumbs button')[1].click()")
	b.shows("location.search.includes('path=%2F')")
	b.pictures(w, "files", "/jobs/ann/train?tab=files&path=ckpt", "document.querySelector('tr[data-file=latest]')", "")
}
