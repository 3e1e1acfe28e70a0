package task_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// saves is a program that takes some time to exit after a signal.
const saves = `
import os, signal, sys, time
def stop(*_):
    # print would fail where the signal comes in the middle of another
    os.write(1, b"saving\n"); time.sleep(0.3); os.write(1, b"saved\n"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True: time.sleep(1)
`

func TestAProgramThatSavesAndEndsWellIsASuccess(t *testing.T) {
	c := newContainer(t, "echo begin\npython3 -c '"+saves+"'\n# the end\n")
	c.start()
	c.await("ready")
	c.signal(unix.SIGTERM)
	c.await("saving")
	c.signal(unix.SIGTERM) // once more changes nothing
	assert.Equal(t, 0, c.wait(), c.errors())
	assert.Contains(t, c.out(), "saved")
}

func TestAScriptThatIsCutOffIsNoSuccess(t *testing.T) {
	c := newContainer(t, "python3 -c '"+saves+"'\necho NOT\n")
	c.start()
	c.await("ready")
	c.signal(unix.SIGTERM)
	assert.Equal(t, 143, c.wait())
	assert.Contains(t, c.out(), "saved", "the program had its time")
	assert.NotContains(t, c.out(), "NOT", "and nothing began after it")
	assert.Equal(t, 143, c.report().ExitCode)
}

func TestAProgramWithoutAShellGetsTheSignalItself(t *testing.T) {
	c := newContainer(t, "")
	c.role().Exec = []string{"python3", "-c", saves}
	c.start()
	c.await("ready")
	c.signal(unix.SIGTERM)
	assert.Equal(t, 0, c.wait())
}

func TestAProgramThatDoesNotEndIsKilledAfterItsGracePeriod(t *testing.T) {
	c := newContainer(t, "trap '' TERM\necho ready\nwhile true; do sleep 0.1; done")
	c.spec.GracePeriodSec = 1
	c.start()
	c.await("ready")
	c.signal(unix.SIGTERM)
	assert.Equal(t, 137, c.wait())
	assert.Contains(t, c.errors(), "didn't exit within 1s: SIGKILL")
}

func TestAStopIsNotTakenForAFailureOfTheProgram(t *testing.T) {
	c := newContainer(t, "echo 'SyntaxError: invalid syntax'\nsh -c 'echo ready; exec sleep 1000'")
	c.start()
	c.await("ready")
	c.signal(unix.SIGTERM)
	assert.Equal(t, 143, c.wait(), "what the log says from before is not why it ended")
}

func TestSIGINTStopsToo(t *testing.T) {
	c := newContainer(t, "")
	c.role().Exec = []string{"python3", "-c", "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.02)"}
	c.start()
	c.await("ready")
	c.signal(unix.SIGINT)
	assert.NotEqual(t, 0, c.wait())
	assert.Contains(t, c.errors(), "KeyboardInterrupt")
}

func TestAStopBeforeTheProgramRunsIsAStop(t *testing.T) {
	t.Run("while it waits for the others", func(t *testing.T) {
		api := newAPI(t)
		c := newContainer(t, "echo NOT")
		api.join(c)
		c.role().Instances = 2
		c.start()
		api.opened(t)
		c.signal(unix.SIGTERM)
		assert.Equal(t, 143, c.wait())
		assert.Contains(t, c.errors(), "while it waited for the job's other tasks")
		assert.Empty(t, c.out())
		assert.Equal(t, 143, c.report().ExitCode)
	})
	t.Run("while its code comes", func(t *testing.T) {
		asked := make(chan struct{}, 1)
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		}))
		defer s.Close()
		c := newContainer(t, "echo NOT")
		c.spec.Code = &spec.Code{URL: s.URL, SHA256: strings.Repeat("0", 64), Size: 10, Dir: "/code"}
		c.start()
		<-asked
		c.signal(unix.SIGTERM)
		assert.Equal(t, 143, c.wait(), c.errors())
	})
	t.Run("in a plugin", func(t *testing.T) {
		c := newContainer(t, "echo NOT")
		c.plugin("cmd", `{"preCommands":["sh -c 'echo ready; exec sleep 1000'"]}`)
		c.role().Plugins[0].IgnoreFailure = true
		c.start()
		c.await("ready")
		c.signal(unix.SIGTERM)
		assert.Equal(t, 143, c.wait())
		assert.Empty(t, c.out(), "a plugin whose failures are ignored doesn't hide the stop")
	})
	t.Run("after the program", func(t *testing.T) {
		c := newContainer(t, "echo main")
		c.plugin("cmd", `{"postCommands":["sh -c 'echo ready; exec sleep 1000'"]}`)
		c.start()
		c.await("ready")
		c.signal(unix.SIGTERM)
		assert.Equal(t, 143, c.wait())
	})
}

func TestADownloadThatFailsEndsTheWaitForTheOthers(t *testing.T) {
	api := newAPI(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	defer l.Close()
	c := newContainer(t, "echo NOT")
	api.join(c)
	c.role().Instances = 2
	c.spec.Code = &spec.Code{URL: "bad\x7f://", SHA256: strings.Repeat("0", 64), Size: 10, Dir: "/code"}
	began := time.Now()
	assert.Equal(t, 247, c.run())
	assert.Less(t, time.Since(began), 60*time.Second, "not the barrier's time")
	assert.Contains(t, c.errors(), "fetch the code")
}
