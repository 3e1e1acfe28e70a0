// Drives a server with OpenPAI's JavaScript SDK, as its users do. What is seen is printed, one JSON object a line; sdk_test.go reads it.
'use strict';
const https = require('https');
const [sdk, url, username, password] = [process.env.SDK, process.env.URL, process.env.NAME, process.env.PASSWORD];
const { PAIV2 } = require(sdk);

const say = (step, seen) => console.log(JSON.stringify({ step, seen }));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// refused is the error that the SDK makes of an answer.
async function refused(promise) {
  try {
    await promise;
    return { code: '' };
  } catch (err) {
    return { code: (err.data && err.data.code) || err.code, type: err.constructor.name };
  }
}

// fetch gets a link of a list of logs, as a browser does: without a token. Links are relative to the host.
function fetch(uri) {
  return new Promise((done, fail) => {
    https.get(new URL(uri, url), (res) => {
      let text = '';
      res.on('data', (part) => { text += part; });
      res.on('end', () => done({ status: res.statusCode, text }));
    }).on('error', fail);
  });
}

async function until(client, name, states) {
  for (;;) {
    const job = await client.job.getJob(username, name);
    if (states.includes(job.jobStatus.state)) {
      return job;
    }
    await pause(200);
  }
}

function jobFile(name, command, more) {
  return Object.assign({
    protocolVersion: 2,
    name,
    type: 'job',
    prerequisites: [{ name: 'image', type: 'dockerimage', uri: 'busybox:1' }],
    taskRoles: {
      Trainer: { instances: 1, dockerImage: 'image', completion: { minFailedInstances: 1, minSucceededInstances: -1 }, resourcePerInstance: { cpu: 1, memoryMB: 64, gpu: 1, ports: { tensorboard: 2 } }, commands: [command] },
      Evaluator: { instances: 1, dockerImage: 'image', completion: { minFailedInstances: null }, resourcePerInstance: { cpu: 1, memoryMB: 64, gpu: 1 }, commands: ['echo evaluating', 'sleep 600'] },
    },
    defaults: { virtualCluster: 'default' },
    extras: { submitFrom: 'js-sdk' },
  }, more);
}

async function main() {
  const cluster = { alias: 'test', rest_server_uri: `${url}/rest-server`, username, password, https: true };
  const client = new PAIV2.OpenPAIClient(cluster);

  const login = await client.authn.basicLogin();
  say('login', { user: login.user, admin: login.admin, parts: login.token.split('.').length });
  say('wrong password', await refused(client.authn.basicLogin(username, 'not the password')));
  say('info', await client.api.getClusterInfo());
  say('me', await client.user.getUser(username));

  // One that runs until it is stopped.
  say('submit', await client.job.createJob(jobFile('long', 'echo hello from the job; echo and more; sleep 600')));
  say('submit twice', await refused(client.job.createJob(jobFile('long', 'true'))));
  say('nothing there', await refused(client.job.getJob(username, 'nothing')));
  say('running', await until(client, 'long', ['RUNNING']));
  say('list', await client.job.listJobs());
  say('list with total', await client.job.listJobs({ username, state: 'RUNNING', limit: 1, order: 'submissionTime,DESC', withTotalCount: true }));
  say('list of none', await client.job.listJobs({ keyword: 'long', state: 'FAILED' }));
  say('config', await client.job.getJobConfig(username, 'long'));
  say('attempt', await client.job.getJob(username, 'long', 0));
  say('no attempt', await refused(client.job.getJob(username, 'long', 9)));
  say('task', await client.job.getTask(username, 'long', 0, 'Trainer', 0));
  say('task by its stripped name', await client.job.getTask(username, 'long', 0, 'trainer', 0));

  let logs;
  for (;;) { // the program begins a moment after its pod
    logs = await client.job.getTaskLogs(username, 'long', 0, 'Trainer', 0, 0);
    const all = logs.locations.find((l) => l.name === 'all');
    const got = await fetch(all.uri);
    if (got.text.includes('and more')) {
      say('log', got);
      break;
    }
    await pause(200);
  }
  say('names of logs', logs.locations.map((l) => l.name));
  const tail = await client.job.getTaskLogs(username, 'long', 0, 'Trainer', 0, 0, true);
  say('end of a log', await fetch(tail.locations[0].uri));
  const uri = tail.locations[0].uri;
  say('changed link', { status: (await fetch(uri.slice(0, -12) + 'AAAAAAAAAAAA')).status });
  say('no such task', await refused(client.job.getTaskLogs(username, 'long', 0, 'Trainer', 7, 0)));

  say('tag', await client.job.addTag(username, 'long', 'baseline'));
  say('tags', (await client.job.getJob(username, 'long')).tags);
  say('untag', await client.job.deleteTag(username, 'long', 'baseline'));
  say('untag again', await refused(client.job.deleteTag(username, 'long', 'baseline')));
  say('events', await client.job.listEvents(username, 'long', { type: 'Normal' }));

  say('stop', await client.job.updateJobExecutionType(username, 'long', 'STOP'));
  say('stopped', await until(client, 'long', ['STOPPED', 'SUCCEEDED', 'FAILED']));
  say('start', await refused(client.job.updateJobExecutionType(username, 'long', 'START')));
  const after = await client.job.getTaskLogs(username, 'long', 0, 'Trainer', 0, 0);
  say('log of what was stopped', await fetch(after.locations[0].uri));

  // One that fails at first, is tried again, and fails again.
  await client.job.createJob(jobFile('broken', 'echo it begins; echo that went wrong >&2; exit 3', { jobRetryCount: 1 }));
  say('failed', await until(client, 'broken', ['FAILED', 'SUCCEEDED', 'STOPPED']));
  say('its first attempt', await client.job.getJob(username, 'broken', 0));
  say('its attempts', await client.jobHistory.getJobAttempts(username, 'broken'));
  say('attempts are known', await client.jobHistory.getJobAttemptsHealthz(username, 'broken'));
  const first = await client.job.getTaskLogs(username, 'broken', 0, 'Trainer', 0, 0);
  say('log of its first attempt', await fetch(first.locations[0].uri));

  // One that fails in a way that is known, and is not tried again.
  await client.job.createJob(jobFile('large', 'echo "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB" >&2; exit 1', { jobRetryCount: 1 }));
  say('too large', await until(client, 'large', ['FAILED', 'SUCCEEDED', 'STOPPED']));

  const made = await client.token.createApplicationToken();
  say('application token', { application: made.application });
  say('tokens', { count: (await client.token.getTokens()).tokens.length });
  say('logout', await client.authn.basicLogout());
  say('after that', await refused(client.job.listJobs()));
  say('link of who left', { status: (await fetch(uri)).status });
}

main().catch((err) => {
  console.error(err && err.data ? JSON.stringify(err.data) : err);
  process.exit(1);
});
