package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// Environment variables that identify the task to its runtime. The controller sets them.
const (
	TaskVariable = "PAI_TASK"
	// PeersTokenVariable contains the token for the addresses of the job's tasks.
	PeersTokenVariable = "PAI_PEERS_TOKEN"
	// CodeTokenVariable contains the token for the job's code.
	CodeTokenVariable = "PAI_CODE_TOKEN"
)

// Task identifies a pod's task, and the attempts of the job and the task.
type Task struct {
	Role                        string // the name in the Framework
	Index, Attempt, TaskAttempt int
}

// String returns ROLE/INDEX/ATTEMPT/TASK-ATTEMPT.
func (t Task) String() string {
	return fmt.Sprintf("%s/%d/%d/%d", t.Role, t.Index, t.Attempt, t.TaskAttempt)
}

// ParseTask parses the output of String.
func ParseTask(text string) (t Task, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 || parts[0] == "" {
		return Task{}, fmt.Errorf("%q isn't ROLE/INDEX/ATTEMPT/TASK-ATTEMPT", text)
	}
	t.Role = parts[0]
	for i, to := range []*int{&t.Index, &t.Attempt, &t.TaskAttempt} {
		*to, err = strconv.Atoi(parts[i+1])
		if err != nil || *to < 0 {
			return Task{}, fmt.Errorf("%q isn't ROLE/INDEX/ATTEMPT/TASK-ATTEMPT: %q isn't a number", text, parts[i+1])
		}
	}
	return t, nil
}
