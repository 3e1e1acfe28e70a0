package status

import "time"

// failedFor is how long a failed job counts as a recent failure.
const failedFor = 24 * time.Hour

// Complete computes a model's counts and its verdict. It is the last step of building a model.
func Complete(c *Cluster) {
	c.Counts = count(c)
	c.Verdict = judge(c)
}

func count(c *Cluster) Counts {
	var n Counts
	for i := range c.Machines {
		m := &c.Machines[i]
		n.Machines++
		if m.State == MachineReady {
			n.MachinesReady++
		}
		for k := range m.GPUs {
			g := &m.GPUs[k]
			n.GPUs++
			if g.Owner != nil {
				n.GPUsUsed++
			}
			if g.Health == GPUSick || g.Health == GPUMissing {
				n.GPUsSick++
			}
		}
	}
	for i := range c.Services {
		n.countService(&c.Services[i])
	}
	for _, j := range c.Jobs {
		n.countJob(j, c.At)
	}
	for i := range c.Alerts {
		if !c.Alerts[i].Silenced {
			n.Alerts++
		}
	}
	return n
}
