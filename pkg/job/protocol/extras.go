package protocol

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	defaultGrace = 30
	maxGrace     = 24 * 3600
	maxDuration  = 366 * 24 * 3600
)

// extraKeys returns the keys of extras that have an effect. They are suggested as corrections of similar words. Other keys are allowed, because
// clients keep notes in extras.
func extraKeys() []string {
	return []string{"gangAllocation", "hivedScheduler", pluginKey, "storages", "hostNetwork", "gracePeriodSec", "maxDurationSec", "checkpointDir", "after", notifyKey}
}

func (r *reader) readExtras(p place) {
	e := &r.job.Extras
	e.Gang, e.Priority, e.GracePeriodSec = true, "test", defaultGrace
	if !p.is(kindMap) {
		return
	}
	for _, f := range p.each() {
		if near := strictyaml.Nearest(f.name(), extraKeys()); near != "" && !slices.Contains(extraKeys(), f.name()) {
			line, column := f.atKey()
			r.add(strictyaml.Warning, line, column, f.path, "job/unknown-extra", fmt.Sprintf("the key %q has no effect", f.name()), fmt.Sprintf("did you mean %q?", near))
		}
	}
	e.Gang = p.get("gangAllocation").gang()
	r.readHived(p.get("hivedScheduler"))
	if list := p.get(pluginKey); list.is(kindList) {
		r.checkPlugins(list)
	}
	r.readStorages(p)
	r.readAfter(p.get("after"))
	r.readNotify(p.get(notifyKey))
	e.HostNetwork = p.get("hostNetwork").boolean(false)
	e.GracePeriodSec = p.get("gracePeriodSec").number(0, maxGrace, defaultGrace)
	e.MaxDurationSec = p.get("maxDurationSec").number(1, maxDuration, 0)
	if dir := p.get("checkpointDir"); dir.is(kindText) {
		if e.CheckpointDir = dir.fill(r.global()); !path.IsAbs(e.CheckpointDir) {
			dir.report("job/path", "the folder is not an absolute path", "write a path that begins with /, on a storage of the job")
		}
	}
}

// maxAfter is the maximum number of jobs that a job can wait for. The controller doesn't check more jobs.
const maxAfter = 100

// readAfter reads the name of a job, or a list of names and of maps {job: NAME, when: succeeded|ended}.
func (r *reader) readAfter(p place) {
	entries := []place{p}
	switch {
	case !p.there():
		return
	case p.v.kind == kindList:
		entries = p.list(0)
	}
	if len(entries) > maxAfter {
		p.report("job/after", fmt.Sprintf("%d jobs, but a job can wait for at most %d", len(entries), maxAfter), "let it wait for one job that waits for the others")
		return
	}
	for _, e := range entries {
		a, at := After{}, e
		if e.v.kind == kindMap {
			if !e.object([]string{"job", "when"}, "job") {
				continue
			}
			at = e.get("job")
			switch when := e.get("when").literal(); when {
			case "", "succeeded":
			case "ended":
				a.Ended = true
			default:
				e.get("when").report("job/after", fmt.Sprintf("there is no %q", shorten(when)), "write succeeded, or ended to accept any result")
			}
		}
		if !at.is(kindText) || at.refers() {
			continue
		}
		if a.Job = at.v.text(); a.Job == "" || a.Job == r.job.Name {
			at.report("job/after", fmt.Sprintf("%q is not another job", a.Job), "write the NAME of a job, or USER/NAME")
			continue
		}
		if err := CheckName(a.Job); err != nil {
			at.report("job/after", err.Error(), hint.Of(err))
			continue
		}
		if slices.ContainsFunc(r.job.Extras.After, func(b After) bool { return a.Job == b.Job }) {
			at.report("job/after", fmt.Sprintf("%q is listed twice", a.Job), "remove one of the two")
			continue
		}
		r.job.Extras.After = append(r.job.Extras.After, a)
	}
}

// notifyKey is the key for the changes of state about which the job's owner is notified.
const notifyKey = "jobStatusChangeNotification"

// readNotify reads a map such as {running: true, failed: true}.
func (r *reader) readNotify(p place) {
	if !p.there() {
		return
	}
	var known []string
	for _, s := range v1.NotifyStates() {
		known = append(known, string(s))
	}
	if !p.object(known) {
		return
	}
	r.job.Extras.SelectsNotices = true
	for _, s := range v1.NotifyStates() {
		if p.get(string(s)).boolean(false) {
			r.job.Extras.Notify = append(r.job.Extras.Notify, s)
		}
	}
}

// gang reports whether the tasks start together. As in OpenPAI, it returns false only if the file says false. So a typing error doesn't make
// tasks start one by one.
func (p place) gang() bool {
	if p.there() && p.v.kind == kindText && hasTag(p.v.text()) {
		p.warn("job/reference", "references can't be used here; tasks start together", "write true or false")
		return true
	}
	if p.there() && p.v.kind != kindBool {
		p.warn("yaml/type", fmt.Sprintf("expected true or false, found %s; tasks start together", p.v.kind), "write true or false, without quotes")
		return true
	}
	return p.boolean(true)
}

func (r *reader) readHived(p place) {
	if !p.is(kindMap) {
		return
	}
	e := &r.job.Extras
	if class := p.get("jobPriorityClass"); class.is(kindText) && !class.refers() {
		if _, ok := priorities()[class.v.text()]; ok {
			e.Priority = class.v.text()
		} else {
			class.report("job/priority", "there is no priority class "+shorten(class.v.text()), "write crit, prod, test or oppo, from the highest to the lowest")
		}
	}
	flag := func(name string) *bool {
		f := p.get(name)
		if !f.is(kindBool) {
			return nil
		}
		return &f.v.truth
	}
	e.GangRelease, e.LazyPreemption, e.IgnoreSuggestedNodes = flag("gangReleaseEnable"), flag("lazyPreemptionEnable"), flag("ignoreK8sSuggestedNodes")
	roles := p.get("taskRoles")
	if !roles.is(kindMap) {
		return
	}
	if len(roles.v.fields) == 0 {
		roles.report("job/empty", "the map is empty", "write at least one role, or remove the key")
	}
	for _, role := range roles.each() {
		r.readCells(role)
	}
	r.checkAffinity(roles)
}

// readCells reads the requests of a role to the scheduler.
func (r *reader) readCells(p place) {
	i := slices.IndexFunc(r.job.Roles, func(role Role) bool { return role.Name == p.name() })
	if i < 0 {
		line, column := p.atKey()
		r.add(strictyaml.Error, line, column, p.path, "job/unknown-role", "there is no role "+shorten(p.name()), oneOf(p.name(), "the roles are ", r.roleNames()))
		return
	}
	if !p.is(kindMap) {
		return
	}
	role := &r.job.Roles[i]
	optional := func(name string) string {
		f := p.get(name)
		if !f.there() || f.v.kind == kindNull {
			return ""
		}
		return f.literal()
	}
	role.SKU, role.PinnedCell, role.Affinity = optional("skuType"), optional("pinnedCellId"), optional("affinityGroupName")
	if role.SKU == "" {
		role.SKU = optional("gpuType") // its former name, before 1.0
	}
	if role.PinnedCell == "" {
		role.PinnedCell = optional("reservationId")
	}
	switch {
	case role.SKU != "" && role.PinnedCell != "":
		p.report("job/cells", "the role has both skuType and pinnedCellId", "keep one of the two: a pinned cell already has a type")
	case role.PinnedCell != "" && r.job.Extras.Priority == "oppo":
		p.get("pinnedCellId").report("job/cells", "jobs of the priority class oppo can't use a pinned cell", "remove pinnedCellId, or choose another jobPriorityClass")
	}
}

// checkAffinity checks that the roles of an affinity group request the same hardware. A role without a request gets the hardware that the other
// roles of its group request.
func (r *reader) checkAffinity(roles place) {
	first := map[string]*Role{}
	for i := range r.job.Roles {
		role := &r.job.Roles[i]
		if role.Affinity == "" || role.SKU == "" && role.PinnedCell == "" {
			continue
		}
		other := first[role.Affinity]
		if other == nil {
			first[role.Affinity] = role
			continue
		}
		if other.SKU != role.SKU || other.PinnedCell != role.PinnedCell {
			roles.get(role.Name).report("job/cells", fmt.Sprintf("the roles %s and %s of affinity group %s have different skuType or pinnedCellId", other.Name, role.Name, shorten(role.Affinity)),
				"write the same in both, or give one of them another affinityGroupName")
		}
	}
	for i := range r.job.Roles {
		if role := &r.job.Roles[i]; role.Affinity != "" && first[role.Affinity] != nil {
			role.SKU, role.PinnedCell = first[role.Affinity].SKU, first[role.Affinity].PinnedCell
		}
	}
	r.shareSKU()
}

// shareSKU completes the types of hardware that the roles request. If all tasks start together and the roles with a type agree on it, the roles
// without a type get the same type, so that the job stays one gang.
func (r *reader) shareSKU() {
	sku := ""
	for _, role := range r.job.Roles {
		if role.Affinity != "" || role.PinnedCell != "" || !r.job.Extras.Gang || sku != "" && role.SKU != "" && role.SKU != sku {
			return
		}
		if role.SKU != "" {
			sku = role.SKU
		}
	}
	for i := range r.job.Roles {
		if role := &r.job.Roles[i]; role.SKU == "" && sku != "" {
			role.SKU, role.SharedSKU = sku, true
		}
	}
}

var claimNames = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (r *reader) readStorages(extras place) {
	e := &r.job.Extras
	list := extras.get("storages")
	if !list.there() {
		r.teamwise(extras.get(pluginKey))
		return
	}
	if !list.is(kindList) {
		return
	}
	e.DefaultStorages = len(list.v.items) == 0
	for _, p := range list.list(0) {
		if !p.is(kindMap) {
			continue
		}
		name, mount := p.get("name"), p.get("mountPath")
		if !name.there() {
			p.warn("job/storage", "the entry has no name, and no effect", "write name: and that of a storage")
			continue
		}
		if name.refers() || mount.refers() {
			continue
		}
		s := Storage{Name: name.text(), MountPath: mount.text()}
		if s.MountPath == "" {
			s.MountPath = "/mnt/" + s.Name
		}
		p.checkStorage(s)
		e.Storages = append(e.Storages, s)
	}
}

// teamwise reads storages from a plugin, because job files for older clusters name storages there.
func (r *reader) teamwise(plugins place) {
	if !plugins.there() || plugins.v.kind != kindList {
		return
	}
	for i, item := range plugins.v.items {
		if name := item.field("plugin"); name == nil || name.kind != kindText || strings.TrimPrefix(name.text(), pluginKey+".") != "teamwise_storage" {
			continue
		}
		names := item.field("parameters").field("storageConfigNames")
		r.job.Extras.DefaultStorages = names == nil
		if names == nil || names.kind != kindList {
			return
		}
		at := place{r, names, plugins.path.With(i, "parameters", "storageConfigNames")}
		for _, p := range at.list(0) {
			if s := (Storage{Name: p.text(), MountPath: "/mnt/" + p.text()}); p.v.kind == kindText && !p.refers() {
				p.checkStorage(s)
				r.job.Extras.Storages = append(r.job.Extras.Storages, s)
			}
		}
		return
	}
}

func (p place) checkStorage(s Storage) {
	clean := path.Clean(s.MountPath)
	switch {
	case !claimNames.MatchString(s.Name) || len(s.Name) > 63:
		p.report("job/storage", fmt.Sprintf("%q is not the name of a storage", shorten(s.Name)), "write lower-case letters, digits and -")
	case !path.IsAbs(s.MountPath) || clean == "/" || strings.Contains(s.MountPath, ":"):
		p.report("job/storage", "a storage can't be mounted at "+shorten(s.MountPath), "write an absolute path below /, without colons")
	case slices.Contains(runtimePaths(), clean) || strings.HasPrefix(clean, "/usr/local/pai/"):
		p.report("job/storage", "the runtime needs "+clean+" itself", "write another path")
	}
	for _, other := range p.r.job.Extras.Storages {
		if path.Clean(other.MountPath) == clean {
			p.report("job/storage", fmt.Sprintf("%s and %s are both mounted at %s", shorten(other.Name), shorten(s.Name), shorten(clean)), "give one of them another mountPath")
		}
	}
}

func runtimePaths() []string {
	return []string{"/usr/local/pai", "/usr/local/pai-spec", "/usr/local/pai-rules", "/dev/shm", "/dev", "/proc", "/sys", "/etc"}
}
