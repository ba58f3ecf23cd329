// The current ClickHouse, which is a library here, behind loopback HTTP: what package remote asks of a server, and no more. Arguments: the folder of
// chdb, a folder for tables. It prints its port.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createRequire } from 'node:module';

const [library, folder] = process.argv.slice(2);
const { Session } = createRequire(path.join(library, 'package.json'))('chdb');
const session = new Session(path.join(folder, 'tables'));
session.query("SET short_circuit_function_evaluation = 'disable'");
session.query('SET max_threads = 2');

let files = 0;
async function answer(statement, body) {
	if (statement === '') return (await session.queryAsync(body.toString(), { format: 'TabSeparated' })).bytes();
	// INSERT INTO table (columns) FORMAT RowBinary, with rows as the body: read from a file.
	const [, table, columns] = /^INSERT INTO (\S+) \((\S+)\) FORMAT RowBinary$/.exec(statement);
	const types = new Map(session.query(`DESCRIBE TABLE ${table}`, 'TabSeparated').trim().split('\n').map((line) => line.split('\t')));
	const structure = columns.split(',').map((name) => `${name} ${types.get(name)}`).join(', ');
	const file = path.join(folder, `rows-${files++}`);
	fs.writeFileSync(file, body);
	session.query(`INSERT INTO ${table} (${columns}) SELECT * FROM file('${file}', 'RowBinary', '${structure}')`);
	fs.unlinkSync(file);
	return '';
}

let last = Promise.resolve(); // one statement at a time
http
	.createServer((request, response) => {
		const parts = [];
		request.on('data', (part) => parts.push(part));
		request.on('end', () => {
			const statement = new URL(request.url, 'http://localhost').searchParams.get('query') ?? '';
			last = last.then(async () => {
				try {
					response.end(await answer(statement, Buffer.concat(parts)));
				} catch (e) {
					response.statusCode = 500;
					response.end(String(e.message));
				}
			});
		});
	})
	.listen(0, '127.0.0.1', function () {
		console.log(this.address().port);
	});
