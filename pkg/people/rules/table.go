package rules

import "slices"

// The pages that a group can grant.
const (
	PageMonitoring      = "monitoring"
	PageAlerts          = "alerts"
	PageMonitoringWrite = "monitoring-write"
)

// table holds all rules. The last two columns, Application and Scope, select the allowed application tokens.
var table = []Rule{
	{ID: "open", Subjects: Open},

	{"jobs.list", Signed, "list", KindJob, true, ScopeRead}, // filtered by Visible
	{"jobs.watch", Signed, "watch", KindJob, true, ScopeRead},
	{"jobs.count", Signed, "count", KindJob, true, ScopeRead},
	{"job.read", OwnerOrSees, "read", KindJob, true, ScopeRead},
	{"job.config", OwnerOrSees, "config", KindJob, true, ScopeRead},
	{"job.logs", OwnerOrSees, "logs", KindJob, true, ScopeRead},
	{"job.ssh", OwnerOnly, "ssh", KindJob, true, ScopeSecrets},
	{"job.stop", Owner, "stop", KindJob, true, ScopeSubmit},
	{"job.tag", Owner, "tag", KindJob, true, ScopeSubmit},
	{"job.retry", Owner, "retry", KindJob, true, ScopeSubmit},
	{"job.scale", Owner, "scale", KindJob, true, ScopeSubmit},
	{"job.delete", Owner, "delete", KindJob, true, ScopeSubmit},
	{"job.forget", Owner, "forget", KindJob, true, ScopeSubmit},
	{"job.enter", Owner, "enter", KindJob, true, ScopeSubmit},
	{"job.submit", GrantedVC, "submit", KindJob, true, ScopeSubmit}, // and the checks of Submit
	{"job.after", OwnerOrSees, "after", KindJob, true, ScopeSubmit}, // for the job that another job waits for

	{"code.put", SelfOnly, "put", KindCode, true, ScopeSubmit},
	{"code.head", SelfOnly, "head", KindCode, true, ScopeSubmit},
	{"templates.list", Signed, "list", KindTemplate, true, ScopeRead}, // filtered by template.read
	{"template.read", Shared, "read", KindTemplate, true, ScopeRead},
	{"template.star", Shared, "star", KindTemplate, true, ScopeSubmit},
	{"template.add", SelfOnly, "add", KindTemplate, true, ScopeSubmit},
	{"template.change", Author, "change", KindTemplate, true, ScopeSubmit}, // for other people's or official ones, the token needs ScopeAdmin
	{"template.remove", Author, "remove", KindTemplate, true, ScopeSubmit}, // as template.change
	{"template.official", Administrator, "change", KindTemplate, true, ScopeAdmin},

	{"usage.read", SelfOrVC, "read", KindUsage, true, ScopeRead},
	{"report.read", Self, "read", KindUsage, true, ScopeRead}, // without an owner, the report about everyone
	{"queue.read", GrantedVC, "read", KindQueue, true, ScopeRead},

	{"user.list", Signed, "list", KindUser, true, ScopeRead}, // fields by ViewUser
	{"user.read", Signed, "read", KindUser, true, ScopeRead},
	{"user.change.self", SelfOnly, "change", KindUser, false, ""},
	{"notifications.read", Self, "read", KindUser, true, ScopeRead},
	{"notifications.change", Self, "change", KindUser, false, ""},
	{"user.manage", Administrator, "manage", KindUser, false, ""},
	{"group.read", Signed, "read", KindGroup, true, ScopeRead}, // fields by ViewGroup
	{"group.members", Administrator, "members", KindGroup, true, ScopeAdmin},
	{"group.manage", Administrator, "manage", KindGroup, false, ""},
	{"token.own", SelfHidden, "own", KindToken, false, ""},
	{"token.manage", Administrator, "manage", KindToken, false, ""},
	{"token.check", Signed, "check", KindToken, true, ""},

	{"vc.read", Signed, "read", KindVC, true, ScopeRead},
	{"sku.read", Signed, "read", KindVC, true, ScopeRead},
	{"vc.manage", Administrator, "manage", KindVC, true, ScopeAdmin},
	{"storage.list", GrantedStorage, "list", KindStorage, true, ScopeRead},
	{"storage.all", Administrator, "list", KindStorage, true, ScopeRead},
	{"storage.secrets", GrantedStorage, "secrets", KindStorage, true, ScopeSecrets},
	{"alert.read", OwnerOrSees, "read", KindAlert, true, ScopeRead}, // for the job that it is about
	{"kube.read", Administrator, "read", KindKube, true, ScopeAdmin},
	{"status.read", Signed, "read", KindKube, true, ScopeRead}, // only the caller's part
	{"action.read", Administrator, "read", KindAction, true, ScopeAdmin},
	{"action.create", Administrator, "create", KindAction, true, ScopeAdmin},
	{"action.cancel", Administrator, "cancel", KindAction, true, ScopeAdmin},
	{"silence.read", Administrator, "read", KindSilence, true, ScopeAdmin},
	{"silence.create", Administrator, "create", KindSilence, true, ScopeAdmin},
	{"silence.end", Administrator, "end", KindSilence, true, ScopeAdmin},
	{"audit.read", Self, "read", KindAudit, false, ""},

	{"page.monitoring", GrantedPage, "read", KindPage, true, ScopeRead},
	{"page.monitoring.write", GrantedPage, "write", KindPage, true, ScopeAdmin},
	{"page.internal", Never, "read", KindPage, false, ""},
}

var byID = func() map[string]Rule {
	out := make(map[string]Rule, len(table))
	for _, r := range table {
		out[r.ID] = r
	}
	return out
}()

// Table returns all rules. Each rule has a unique ID.
func Table() []Rule { return slices.Clone(table) }

// Find returns the rule with the given id, and reports whether it exists.
func Find(id string) (Rule, bool) {
	r, known := byID[id]
	return r, known
}
