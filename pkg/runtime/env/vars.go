package env

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/spec"
)

// Var is an environment variable.
type Var struct {
	Name, Value string
	scope       scope
}

// scope determines which variables are omitted if a job has too many tasks. A program can't start if its environment is too
// large.
type scope int

const (
	always    scope = iota
	perTask         // one per task
	secondary       // repetitions in the Framework's spelling of the role
)

// Limits of the environment. Linux allows 128 KiB for one variable, and 2 MiB for the arguments and the environment together.
// The program's arguments and variables that a shell adds also need space.
const (
	MaxBytes    = 1 << 20
	maxVariable = 128<<10 - 1
)

// Vars returns the variables in the order of docs/job-runtime.md, and messages about omitted variables. used is the size of the
// environment without these variables, in bytes.
func (l *Layout) Vars(used int) ([]Var, []string) {
	v := &vars{index: map[string]int{}}
	l.jobVars(v)
	l.ownVars(v)
	l.rankVars(v)
	// Add the Framework's spelling first. The user's spelling must override it if a role's name equals the Framework's name of
	// a different role.
	l.roleVars(v, secondary, func(r *spec.Role) string { return r.Object })
	l.roleVars(v, always, func(r *spec.Role) string { return r.Name })
	l.taskVars(v, secondary, func(t *Task) string { return t.Object })
	l.taskVars(v, perTask, func(t *Task) string { return t.Role })
	return v.fit(MaxBytes - used)
}

type vars struct {
	list  []Var
	index map[string]int
}

func (v *vars) set(s scope, name, value string) {
	if i, ok := v.index[name]; ok {
		v.list[i] = Var{name, value, s}
		return
	}
	v.index[name] = len(v.list)
	v.list = append(v.list, Var{name, value, s})
}

func (v *vars) add(name, value string) { v.set(always, name, value) }

// fit omits variables that exceed the limits. It returns the other variables, and messages about the omitted variables.
func (v *vars) fit(limit int) ([]Var, []string) {
	var notes []string
	list := slices.DeleteFunc(v.list, func(x Var) bool {
		if len(x.Name)+1+len(x.Value) <= maxVariable {
			return false
		}
		notes = append(notes, fmt.Sprintf("the variable %s would have %d bytes, more than Linux allows: it is left out; peers.json has its content", x.Name, len(x.Value)))
		return true
	})
	for _, s := range []scope{secondary, perTask} {
		size := 0
		for _, x := range list {
			size += len(x.Name) + len(x.Value) + 10 // "=", NUL, a pointer
		}
		if size <= limit {
			break
		}
		n := len(list)
		list = slices.DeleteFunc(list, func(x Var) bool { return x.scope == s })
		if s == perTask && n > len(list) {
			notes = append(notes, fmt.Sprintf("the job has so many tasks that their %d variables would exceed %d bytes: those of single tasks are left out; peers.json has all of them", n-len(list), MaxBytes))
		}
	}
	return list, notes
}

func (l *Layout) jobVars(v *vars) {
	s := l.Spec
	full := s.User + "~" + s.Job
	names := make([]string, len(s.Roles))
	for i := range s.Roles {
		names[i] = s.Roles[i].Name
	}
	v.add("PAI_FRAMEWORK_NAME", full)
	v.add("PAI_JOB_NAME", full)
	v.add("PAI_USER_NAME", s.User)
	v.add("PAI_USERNAME", s.User)
	v.add("PAI_DEFAULT_FS_URI", "")
	v.add("PAI_VIRTUAL_CLUSTER", s.VirtualCluster)
	for _, name := range []string{"PAI_TASK_ROLE_COUNT", "PAI_TASK_ROLES_NUM", "PAI_JOB_TASK_ROLE_COUNT"} {
		v.add(name, strconv.Itoa(len(names)))
	}
	for _, name := range []string{"PAI_TASK_ROLE_LIST", "PAI_JOB_TASK_ROLE_LIST"} {
		v.add(name, strings.Join(names, ","))
	}
	for _, name := range []string{"PAI_TASKS_NUM", "PAI_JOB_TASK_COUNT"} {
		v.add(name, strconv.Itoa(len(l.Tasks)))
	}
	v.add("FC_FRAMEWORK_NAME", s.Framework)
	v.add("FC_FRAMEWORK_ATTEMPT_ID", strconv.Itoa(l.Self.Attempt))
	v.add("PAI_JOB_ATTEMPT_ID", strconv.Itoa(l.Self.Attempt))
	if s.CheckpointDir != "" {
		v.add("PAI_CHECKPOINT_DIR", s.CheckpointDir)
	}
}

func (l *Layout) ownVars(v *vars) {
	me := l.Me()
	index := strconv.Itoa(me.Index)
	v.add("PAI_CURRENT_TASK_ROLE_NAME", me.Role)
	v.add("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", index)
	v.add("PAI_TASK_INDEX", index)
	v.add("FC_TASKROLE_NAME", me.Object)
	v.add("FC_TASK_INDEX", index)
	v.add("FC_TASK_ATTEMPT_ID", strconv.Itoa(l.Self.TaskAttempt))
	v.add("PAI_TASK_ATTEMPT_ID", strconv.Itoa(l.Self.TaskAttempt))
	if me.Address != "" {
		v.add("PAI_CURRENT_CONTAINER_IP", me.Address)
		v.add("PAI_CONTAINER_HOST_IP", me.Address)
	}
	v.add("PAI_CURRENT_CONTAINER_PORT", me.firstPort("http"))
	v.add("PAI_CONTAINER_HOST_PORT", me.firstPort("http"))
	v.add("PAI_CONTAINER_SSH_PORT", me.firstPort("ssh"))
	var all strings.Builder
	for _, label := range slices.Sorted(maps.Keys(me.Ports)) {
		v.add("PAI_CONTAINER_HOST_"+label+"_PORT_LIST", join(me.Ports[label]))
		fmt.Fprintf(&all, "%s:%s;", label, join(me.Ports[label]))
	}
	v.add("PAI_CONTAINER_HOST_PORT_LIST", all.String())
	v.add("PAI_WORK_DIR", l.Self.WorkDir)
	if l.Spec.Code != nil {
		v.add("PAI_CODE_DIR", l.Spec.Code.Dir)
	}
	v.add("PAI_PEERS_FILE", PeersFile)
	v.add("PAI_HOSTFILE", HostFile)
}

// rankVars adds the variables for launchers of distributed programs, such as torchrun (PET_*) and torch's env://.
func (l *Layout) rankVars(v *vars) {
	me := l.Me()
	address, port := l.Master()
	local, node, p := strconv.Itoa(me.LocalWorldSize), strconv.Itoa(me.NodeRank), strconv.Itoa(port)
	v.add("MASTER_ADDR", address)
	v.add("MASTER_PORT", p)
	v.add("WORLD_SIZE", strconv.Itoa(l.World))
	v.add("RANK", strconv.Itoa(me.Rank))
	v.add("NODE_RANK", node)
	v.add("LOCAL_WORLD_SIZE", local)
	v.add("PET_NNODES", strconv.Itoa(len(l.Tasks)))
	v.add("PET_NPROC_PER_NODE", local)
	v.add("PET_NODE_RANK", node)
	v.add("PET_MASTER_ADDR", address)
	v.add("PET_MASTER_PORT", p)
	v.add("PET_RDZV_BACKEND", "static")
	v.add("PET_RDZV_ENDPOINT", endpoint(address, p))
	v.add("PET_RDZV_ID", l.Spec.Framework+"-"+strconv.Itoa(l.Self.Attempt))
}

func (l *Layout) roleVars(v *vars, s scope, spelling func(*spec.Role) string) {
	for i := range l.Spec.Roles {
		r := &l.Spec.Roles[i]
		name := spelling(r)
		v.set(s, "PAI_TASK_ROLE_TASK_COUNT_"+name, strconv.Itoa(l.Instances(i)))
		v.set(s, "PAI_RESOURCE_"+name, fmt.Sprintf("%d,%d,%d,%d", r.GPU, r.CPU, r.MemoryMB, r.ShmMB))
		v.set(s, "PAI_MIN_FAILED_TASK_COUNT_"+name, strconv.Itoa(r.MinFailed))
		v.set(s, "PAI_MIN_SUCCEEDED_TASK_COUNT_"+name, strconv.Itoa(r.MinSucceeded))
	}
}

func (l *Layout) taskVars(v *vars, s scope, spelling func(*Task) string) {
	var instances []string
	for i := range l.Spec.Roles {
		tasks := l.Tasks[l.First[i]:l.First[i+1]]
		var hosts []string
		for k := range tasks {
			t := &tasks[k]
			role, index := spelling(t), strconv.Itoa(t.Index)
			instances = append(instances, role+":"+index)
			if t.Address == "" {
				continue
			}
			hosts = append(hosts, endpoint(t.Address, t.firstPort("http")))
			v.set(s, "PAI_HOST_IP_"+role+"_"+index, t.Address)
			for _, label := range slices.Sorted(maps.Keys(t.Ports)) {
				ports := join(t.Ports[label])
				v.set(s, "PAI_PORT_LIST_"+role+"_"+index+"_"+label, ports)
				v.set(s, "PAI_"+role+"_"+index+"_"+label+"_PORT", ports)
			}
		}
		if len(tasks) > 0 {
			v.set(s, "PAI_TASK_ROLE_"+spelling(&tasks[0])+"_HOST_LIST", strings.Join(hosts, ","))
		}
	}
	v.set(s, "PAI_TASK_ROLE_INSTANCES", strings.Join(instances, ","))
}
