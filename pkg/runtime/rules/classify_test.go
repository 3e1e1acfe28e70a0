package rules

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFactsOfTheNodeCount(t *testing.T) {
	for name, c := range map[string]struct {
		exit Exit
		want int
		by   string
	}{
		"a GPU with memory errors":             {Exit{Code: 1, GPUECC: true}, 128, "nvidiaDoubleEccError"},
		"a sick GPU":                           {Exit{Code: 1, GPUFault: "GPU 3: XID 79"}, 116, "gpuFault"},
		"a sick GPU with memory errors":        {Exit{Code: 1, GPUECC: true, GPUFault: "GPU 3: XID 48"}, 128, "nvidiaDoubleEccError"},
		"a sick GPU, and words of a mistake":   {Exit{Code: 1, GPUFault: "GPU 3: XID 79", UserLog: []byte("RuntimeError: CUDA error: unspecified launch failure")}, 116, "gpuFault"},
		"memory used up":                       {Exit{Code: 1, OOMKilled: true}, 227, "oomKilled"},
		"memory used up and killed":            {Exit{Code: 137, OOMKilled: true}, 227, "oomKilled"},
		"a success on such a GPU":              {Exit{Code: 0, GPUECC: true, GPUFault: "GPU 3: XID 79", OOMKilled: true}, 0, ""},
		"an SSH barrier":                       {Exit{Code: 10, PlatformLog: []byte("SSH barrier reaches max retry count")}, 249, "SSH barrier reaches max retry count"},
		"its words in the program's log":       {Exit{Code: 10, UserLog: []byte("SSH barrier reaches max retry count")}, 255, ""},
		"its words with another exit code":     {Exit{Code: 11, PlatformLog: []byte("SSH barrier reaches max retry count")}, 255, ""},
		"an image without a shell":             {Exit{Code: 127, PlatformLog: []byte("sh: command not found: the job has commands for a shell and its image has neither bash nor sh")}, 195, "sh: command not found: the job has commands for a shell and its image has neither bash nor sh"},
		"an image without the job's shell":     {Exit{Code: 127, PlatformLog: []byte(`/bin/zsh: command not found (exec: "/bin/zsh")`)}, 195, `/bin/zsh: command not found (exec: "/bin/zsh")`},
		"an image without the job's program":   {Exit{Code: 127, PlatformLog: []byte("train: command not found")}, 220, "exit code 220"},
		"the kernel's words in the platform's": {Exit{Code: 137, PlatformLog: []byte("Memory cgroup out of memory: Killed process 12")}, 227, "Memory cgroup out of memory: Killed process 12"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Builtin().ClassifyExit(c.exit)
			assert.Equal(t, c.want, m.Code)
			assert.Equal(t, c.by, m.Matched())
		})
	}
}

func TestASetThatKnowsNoGPUFaultsIsUsedAsBefore(t *testing.T) {
	s := parse(t, `
- {code: 128, phrase: A, pattern: {runtimeContainerPatterns: [{gpuInfo: {nvidiaDoubleEccError: true}}]}}
- {code: 221, phrase: B, pattern: {runtimeContainerPatterns: [{userLogRegex: boom}]}}
`)
	fault := "GPU 3: XID 79"
	assert.Equal(t, 221, s.ClassifyExit(Exit{Code: 1, GPUFault: fault, UserLog: []byte("boom")}).Code)
	assert.Equal(t, 128, s.ClassifyExit(Exit{Code: 1, GPUFault: fault, GPUECC: true}).Code)
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 1, GPUFault: fault}).Code)
	assert.Equal(t, "ContainerGpuFault", s.ByCode(116).Phrase, "a task whose runtime has the built-in set is explained")
}

func TestARuleMayTakeAGPUFaultTogetherWithOtherFacts(t *testing.T) {
	s := parse(t, `[{code: 221, phrase: A, pattern: {runtimeContainerPatterns: [{gpuFault: true, exitCode: 9}]}}]`)
	assert.Equal(t, 221, s.ClassifyExit(Exit{Code: 9, GPUFault: "GPU 3: XID 79"}).Code)
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 9}).Code)
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 1, GPUFault: "GPU 3: XID 79"}).Code)
}

func TestTheFirstRuleOfTheListWinsNotTheFirstLineOfTheLog(t *testing.T) {
	s := parse(t, `
- {code: 221, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: second}]}}
- {code: 222, phrase: B, pattern: {runtimeContainerPatterns: [{userLogRegex: first}]}}
`)
	assert.Equal(t, 221, s.ClassifyExit(Exit{Code: 1, UserLog: []byte("first\nsecond\n")}).Code)
}

func TestAPatternNeedsAllOfItsFields(t *testing.T) {
	s := parse(t, `
- code: 221
  phrase: A
  pattern:
    runtimeContainerPatterns:
    - {exitCode: 3, userLogRegex: u, platformLogRegex: p, oomKilled: false, gpuFault: false, gpuInfo: {nvidiaDoubleEccError: false}}
`)
	whole := Exit{Code: 3, UserLog: []byte("u"), PlatformLog: []byte("p")}
	assert.Equal(t, 221, s.ClassifyExit(whole).Code)
	for name, change := range map[string]func(*Exit){
		"exit code": func(e *Exit) { e.Code = 4 }, "user log": func(e *Exit) { e.UserLog = nil }, "platform log": func(e *Exit) { e.PlatformLog = nil },
		"memory": func(e *Exit) { e.OOMKilled = true }, "GPU": func(e *Exit) { e.GPUECC = true },
		"fault": func(e *Exit) { e.GPUFault = "GPU 3: XID 79" },
	} {
		e := whole
		change(&e)
		assert.Equal(t, 255, s.ClassifyExit(e).Code, name)
	}
}

func TestOnlyTheLastLinesAreSearchedWhereARuleSaysSo(t *testing.T) {
	s := parse(t, `[{code: 221, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: boom, lastLines: 2}]}}]`)
	assert.Equal(t, 221, s.ClassifyExit(Exit{Code: 1, UserLog: []byte("boom\nx\n\n\n")}).Code, "empty lines at the end don't count")
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 1, UserLog: []byte("boom\nx\ny\n")}).Code)
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 1, UserLog: []byte("boom\rx\ry")}).Code, "a carriage return ends a line")
}

func TestAWordNearbyOnAWarningIsPassedOver(t *testing.T) {
	s := parse(t, `[{code: 221, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: boom, errorLine: true}]}}]`)
	m := s.ClassifyExit(Exit{Code: 1, UserLog: []byte("WARNING boom 1\nDEBUG: boom 2\nboom 3 - warning\nError: boom 4\n")})
	assert.Equal(t, "Error: boom 4", m.UserLog)
	assert.Equal(t, 255, s.ClassifyExit(Exit{Code: 1, UserLog: []byte("W0102 x: boom\n2026-01-02 03:04:05.6: I boom")}).Code)
}

func TestMegabytesWithoutARuleTakeLittleTime(t *testing.T) {
	lines := bytes.Repeat([]byte("epoch 1 step 2 loss 0.3 error rate 0.1 cuda memory 3 GiB\n"), 100_000)
	one := bytes.Repeat([]byte("a"), 6<<20)
	for name, log := range map[string][]byte{"lines": lines, "one line": one, "bytes": bytes.Repeat([]byte{0xff, 0, '\r', 0x1b}, 1<<20)} {
		start := time.Now()
		assert.Equal(t, 255, Builtin().ClassifyExit(Exit{Code: 1, UserLog: log, PlatformLog: log}).Code)
		t.Log(name, time.Since(start))
	}
}

// Searching for a regex's required words is only an optimization, which must never change the result.
func TestTheShortCutByWordsFindsTheSame(t *testing.T) {
	for _, r := range Builtin().runtime {
		for _, p := range r.patterns {
			if p.user == nil {
				continue
			}
			for name, c := range corpus {
				x := newText([]byte(c.log))
				if p.user.MatchString(x.log) {
					assert.True(t, p.user.mayMatch(x.lower), "%s: %s needs %q", name, p.UserLog, p.user.words)
				}
			}
		}
	}
	for expr, want := range map[string][]string{
		`(?i)Foo bar`: {"foo bar"}, `a(?:bc|d)e*`: {"a"}, `(?:bc|de)+f`: {"bc", "de"}, `x*`: nil, `(?:abc|x*)d`: {"d"}, `ä`: nil, `(abc)+`: {"abc"}, `[ab]c{2,}`: {"c"}, `ab{0,3}`: {"a"},
	} {
		re, err := newLogRegex(expr)
		require.NoError(t, err)
		assert.Equal(t, want, re.words, expr)
	}
}

func TestCodesWithoutARuleHaveStandIns(t *testing.T) {
	own := parse(t, `[{code: 226, phrase: Mine}]`)
	assert.Equal(t, "Mine", own.ByCode(226).Phrase)
	assert.Equal(t, "ContainerNcclTimeout", own.ByCode(236).Phrase, "what the set doesn't know the built-in one does")
	assert.Equal(t, "PAIRuntimeExitAbnormally", own.ByCode(17).Phrase)
	assert.Equal(t, "ContainerUndefinedNegativeExitCode", own.ByCode(-5).Phrase)
	assert.Equal(t, "ContainerTransientConflictFailed", own.ByCode(201).Phrase)
	assert.Equal(t, []string{"Transient", "Conflict"}, own.ByCode(201).Attributes())
	var none *Set
	assert.Equal(t, "Succeeded", none.ByCode(0).Phrase)
}

func TestLogsAreCleanedBeforeTheyAreSearched(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\r\n":                    "a\nb\n",
		"10%\r20%\r\n":                  "10%\n20%\n",
		"\x1b[1;31mred\x1b[0m":          "red",
		"\x1b]0;title\x07x":             "x",
		"\x1b":                          "",
		"\x1b[":                         "",
		"a\x00b\x07c":                   "abc",
		"\xff\xfeü\xc3":                 "??ü?",
		"\u2028":                        "\u2028",
		"plain":                         "plain",
		strings.Repeat("x", 3) + "\x7f": "xxx",
	} {
		assert.Equal(t, want, Clean([]byte(in)), "%q", in)
	}
	assert.Len(t, Clean(bytes.Repeat([]byte("x"), MaxLog+5)), MaxLog)
}

func parse(t *testing.T, text string) *Set {
	t.Helper()
	s, findings := Parse("rules.yaml", []byte(text))
	require.NoError(t, findings.Err())
	return s
}
