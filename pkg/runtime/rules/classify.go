package rules

import "fmt"

// MaxLog is how much of the end of each log is searched.
const MaxLog = 10 << 20

// Exit is how a task's program ended, as the runtime saw it.
type Exit struct {
	Code int // the code of the program: 0 to 255, 128+n after signal n
	// UserLog and PlatformLog are the ends of the program's and the runtime's output. They may contain any bytes.
	UserLog, PlatformLog []byte
	// GPUECC reports that the driver counts double-bit errors of a GPU's memory.
	GPUECC bool
	// GPUFault is the machine's report of faulty GPUs of the task; "" if it reports no fault, or there is no report.
	GPUFault string
	// OOMKilled reports that the kernel killed a process of the container because its memory was used up.
	OOMKilled bool
}

// Match is the meaning of a failure.
type Match struct {
	Rule Rule
	// Code is the rule's code, or the container's exit code if a pod matches no rule.
	Code int
	// UserLog and PlatformLog are the matched texts, and UserLogAt and PlatformLogAt their positions in the cleaned log (Clean);
	// a position is -1 without a match.
	UserLog, PlatformLog     string
	UserLogAt, PlatformLogAt int
	// ExitCode, GPUECC, GPUFault, OOMKilled report which other facts the rule matched.
	ExitCode, GPUECC, GPUFault, OOMKilled bool
	// Known is false if no rule matched.
	Known bool
}

// ClassifyExit returns the first rule that matches. If no rule does, the code is 255.
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

// Matched describes the match in a few words. It is empty if no rule matched.
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
