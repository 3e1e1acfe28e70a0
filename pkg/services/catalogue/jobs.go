package catalogue

import "slices"

// JobService is the service that runs jobs. The service's section has the same name.
const JobService = "job-controller"

// configureJobs passes the scheduler's name to the job controller. configureJobs also sets a second replica if the replicas can share the archive and
// a second machine is available.
func (b *builder) configureJobs() {
	s := b.services[JobService]
	if s == nil || s.Upstream != nil || !s.Enabled {
		return
	}
	computed := map[string]any{"schedulerName": "", keyGPUClaims: false}
	if b.ownRuns(SchedulerService) {
		computed["schedulerName"] = "pai-scheduler"
		computed[keyGPUClaims] = b.agentServesAll()
	}
	postgresql, _ := s.Values["postgresql"].(map[string]any)
	dsn, _ := postgresql["dsn"].(string) // not yet among the credentials
	own, _ := s.Values[keyCredentialsSecret].(string)
	shared, _ := postgresql["enabled"].(bool)
	switch {
	case shared:
		computed["replicas"] = int64(min(2, max(1, len(machinesOf(b.cfg, s.Placement)))))
		computed["persistence"] = map[string]any{"enabled": false} // no volume is created for it
		if dsn == "" && own == "" {
			b.fail(at(JobService, "postgresql"), "jobs/no-dsn", "the address of the database is missing",
				"set dsn: postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full")
		}
	case dsn != "":
		b.warn(at(JobService, "postgresql", "dsn"), "jobs/dsn-unused", "the database isn't used", "set postgresql.enabled to true, or remove dsn")
	}
	if n, _ := s.Values["replicas"].(int64); n > 1 && !shared {
		b.fail(at(JobService, "replicas"), "jobs/replicas", "several controllers need a database that they can share",
			"set postgresql.enabled and postgresql.dsn, or replicas to 1")
	}
	s.Values = mergeComputed(computed, s.Values)
	if claims, _ := s.Values[keyGPUClaims].(bool); !claims {
		return
	}
	if computed[keyGPUClaims] != true {
		b.fail(at(JobService, keyGPUClaims), "jobs/claims", "claims would not be allocated: this needs the services scheduler and agent, with the agent on each machine with GPUs",
			"remove "+keyGPUClaims+": it is enabled automatically where possible")
	}
	s.Requires = append(slices.Clone(s.Requires), AgentService)
}

// keyGPUClaims is the key that defines whether tasks receive their GPUs through claims.
const keyGPUClaims = "claims"

func (b *builder) ownRuns(name string) bool {
	s := b.services[name]
	return s != nil && s.Upstream == nil && s.Enabled
}

// agentServesAll reports whether the agent runs on all machines with GPUs and can allocate the GPUs of these machines.
func (b *builder) agentServesAll() bool {
	if !b.ownRuns(AgentService) {
		return false
	}
	served := 0
	for _, m := range machinesOf(b.cfg, b.services[AgentService].Placement) {
		if servedGPU(b.cfg.Layout, m) != nil {
			served++
		}
	}
	for _, m := range b.cfg.Layout.MachineList {
		if gpu := b.cfg.Layout.MachineSKU[m.SKU].GPU; gpu != nil && gpu.Count > 0 {
			served--
		}
	}
	return served == 0
}
