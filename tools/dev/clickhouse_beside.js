// A server of ClickHouse's HTTP for tools/dev/clickhouse_beside: a modern engine without a server, which npm's chdb has.
// NODE_PATH says where chdb is; the words are the folder of its data and the port.
const { Session } = require("chdb");
const fs = require("fs");
const http = require("http");
const path = require("path");

const [folder, port] = process.argv.slice(2);
const session = new Session(path.join(folder, "data"));
const NAMES = /^INSERT INTO (\w+) FORMAT Native$/;
let inserts = 0;

function answer(url, body) {
  const words = new URL(url, "http://localhost").searchParams;
  const database = words.get("database");
  if (database) session.query(`USE ${database}`);
  const insert = words.get("query")?.match(NAMES);
  if (insert) {
    const file = path.join(folder, `insert${++inserts}`);
    fs.writeFileSync(file, body);
    session.query(`INSERT INTO ${insert[1]} SELECT * FROM file('${file}', Native)`);
    fs.unlinkSync(file);
    return "";
  }
  return session.query(body.toString(), "TabSeparated");
}

http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    let status = 200;
    let text = "";
    try {
      text = answer(request.url, Buffer.concat(pieces));
    } catch (error) {
      status = 500;
      text = String(error.message ?? error);
    }
    response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" });
    response.end(text);
  });
}).listen(Number(port), "127.0.0.1", () => console.log(session.query("SELECT version()", "TabSeparated").trim()));
