-- bench: tables in memory, with text, an index, joins, sorting and updates. ROUNDS is set before by .param.
.bail on
create table item(id integer primary key, name text, category text, price integer);
create table sale(id integer primary key, item integer, amount integer, note text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < :rounds * 20)
    insert into item select i, printf('item-%06d-%x', i, i * 7919), printf('category-%d', i % 97), i * 31 % 1009 from n;
with recursive n(i) as (select 1 union all select i + 1 from n where i < :rounds * 200)
    insert into sale select i, i * 7919 % (:rounds * 20) + 1, i % 13, 'note ' || hex(i * 2654435761) from n;
create index item_by_name on item(name);
create index sale_by_note on sale(note);
select category, count(*), sum(price * amount), max(name) from sale join item on item.id = sale.item group by category;
select upper(substr(note, 1, 8)) || '-' || name, group_concat(amount, ',') from sale join item on item.id = sale.item
    group by 1 order by 1 desc limit 50;
update item set name = replace(name, 'item', 'article') where price % 2;
select count(distinct json_extract(json_object('name', name, 'tags', json_array(category, price)), '$.tags[0]')) from item;
select count(*) from sale where note like '%AB%' or trim(note, 'note ') like '4%';
delete from sale where item % 3 = 0;
select count(*), sum(length(note)) from sale;
