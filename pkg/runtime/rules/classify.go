package rules

import "fmt"

// MaxLog is the number of bytes at the end of each log that rules search.
const MaxLog = 10 << 20

// Exit describes how a task's program ended.
type Exit struct {
	Code int // the code of the program: 0 to 255, 128+n after signal n
	// UserLog is the end of the program's output. PlatformLog is the end of the runtime's output. They may contain any bytes.
	UserLog, PlatformLog []byte
	// GPUECC reports whether the driver counts double-bit errors of a GPU's memory.
	GPUECC bool
	// GPUFault is the machine's report about faulty GPUs of the task, or "".
	GPUFault string
	// OOMKilled reports whether the kernel killed a process of the container because memory was exhausted.
	OOMKilled bool
}

// Match is the result of matching a failure with the rules.
type Match struct {
	Rule Rule
	// Code is the rule's code, or the container's exit code if a pod matches no rule.
	Code int
	// UserLog and PlatformLog are the matched texts. UserLogAt and PlatformLogAt are their positions in the cleaned logs (see
	// Clean), or -1 without a match.
	UserLog, PlatformLog     string
	UserLogAt, PlatformLogAt int
	// These fields report which other facts the rule matched.
	ExitCode, GPUECC, GPUFault, OOMKilled bool
	// Known reports whether a rule matched.
	Known bool
}

// ClassifyExit matches the first rule that applies to an exit. If no rule applies, the code is 255.
func (s *Set) ClassifyExit(e Exit) Match {
	if e.Code == 0 {
		return Match{Rule: s.ByCode(CodeSucceeded), UserLogAt: -1, PlatformLogAt: -1, Known: true}
	}
	user, platform := newText(e.UserLog), newText(e.PlatformLog)
	for _, r := range s.runtime {
		for _, p := range r.patterns {
			if m, ok := p.match(e, user, platform); ok {
				m.Rule, m.Known = s.Rules[r.rule], true
				m.Code = m.Rule.Code
				return m
			}
		}
	}
	return Match{Rule: s.ByCode(CodeUnknown), Code: CodeUnknown, UserLogAt: -1, PlatformLogAt: -1}
}

func (p *exitPattern) match(e Exit, user, platform *text) (Match, bool) {
	m := Match{UserLogAt: -1, PlatformLogAt: -1}
	if p.ExitCode != nil {
		if *p.ExitCode != e.Code {
			return m, false
		}
		m.ExitCode = true
	}
	if p.GPU != nil {
		if p.GPU.NvidiaDoubleEccError != e.GPUECC {
			return m, false
		}
		m.GPUECC = e.GPUECC
	}
	if p.GPUFault != nil {
		if *p.GPUFault != (e.GPUFault != "") {
			return m, false
		}
		m.GPUFault = *p.GPUFault
	}
	if p.OOMKilled != nil {
		if *p.OOMKilled != e.OOMKilled {
			return m, false
		}
		m.OOMKilled = e.OOMKilled
	}
	if p.user != nil {
		if m.UserLog, m.UserLogAt = user.find(p.user, p.LastLines, p.ErrorLine); m.UserLogAt < 0 {
			return m, false
		}
	}
	if p.platform != nil {
		if m.PlatformLog, m.PlatformLogAt = platform.find(p.platform, p.LastLines, p.ErrorLine); m.PlatformLogAt < 0 {
			return m, false
		}
	}
	return m, true
}

// Matched describes the match in a few words. It returns "" if no rule matched.
func (m Match) Matched() string {
	switch {
	case m.UserLog != "":
		return m.UserLog
	case m.PlatformLog != "":
		return m.PlatformLog
	case m.GPUECC:
		return "nvidiaDoubleEccError"
	case m.GPUFault:
		return "gpuFault"
	case m.OOMKilled:
		return "oomKilled"
	case m.ExitCode:
		return fmt.Sprintf("exit code %d", m.Code)
	}
	return ""
}
